# Bash also splits words at : and @; what is before such a split is not part of the completion.
_sixscope() {
  local words line
  read -ra words <<< "${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} == *' ' ]] && words+=("")
  local whole="${words[-1]}"
  local before="${whole%"${COMP_WORDS[COMP_CWORD]}"}"
  COMPREPLY=()
  while read -r line; do
    [[ $line == "$whole"* ]] && COMPREPLY+=("${line#"$before"}")
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null | cut -f 1)
}
complete -F _sixscope sixscope
