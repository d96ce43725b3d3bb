# Bash also splits words at : and @; what is before such a split is not part of the completion.
_sixscope() {
  local IFS=$' \t\n' words line
  # Without -r, so that a name with spaces is one word.
  read -a words <<< "${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} == *' ' && ${COMP_LINE:0:COMP_POINT} != *'\ ' ]] && words+=("")
  local whole="${words[-1]}" current="${COMP_WORDS[COMP_CWORD]//\\/}"
  local before="${whole%"$current"}"
  COMPREPLY=()
  while read -r line; do
    [[ $line == "$whole"* ]] && line="${line#"$before"}" && COMPREPLY+=("${line// /\\ }")
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null | cut -f 1)
}
complete -F _sixscope sixscope
