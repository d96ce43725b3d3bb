#compdef sixscope
_sixscope() {
  local word about
  local -a found
  # _describe divides a word from its meaning at the first colon without a backslash.
  while IFS=$'\t' read -r word about; do
    found+=("${word//:/\\:}${about:+:$about}")
  done < <("${(Q)words[1]}" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
  (( $#found )) && _describe sixscope found
}
if [[ "$funcstack[1]" == _sixscope ]]; then _sixscope "$@"; else compdef _sixscope sixscope; fi
