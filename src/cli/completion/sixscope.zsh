#compdef sixscope
_sixscope() {
  local -a found
  found=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && _describe sixscope found
}
if [[ "$funcstack[1]" == _sixscope ]]; then _sixscope "$@"; else compdef _sixscope sixscope; fi
