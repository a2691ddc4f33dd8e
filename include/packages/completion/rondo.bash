# SPDX-License-Identifier: BSD-3-Clause
# Completion of the `rondo` command for bash. Words come from the command itself: `rondo --complete [COMMAND]`
# prints a line per word, with tabs: word, name of its value, values that are accepted, what it does; "-" is none.
_rondo() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} table values
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(rondo --complete 2>/dev/null | cut -f 1)" -- "$current")
        return
    fi
    table=$(rondo --complete "${COMP_WORDS[1]}" 2>/dev/null)
    values=$(awk -F '\t' -v word="$previous" '$1 == word && $2 != "-" && $3 != "-" { print $3; exit }' <<<"$table")
    if [ -n "$values" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(cut -f 1 <<<"$table" | grep -e '^-')" -- "$current")
    elif ! awk -F '\t' -v word="$previous" '$1 == word && $2 != "-" { found = 1 } END { exit !found }' <<<"$table"; then
        mapfile -t COMPREPLY < <(compgen -W "$(cut -f 1 <<<"$table" | grep -v -e '^-')" -- "$current")
    fi # nothing fits: -o default offers files
}
complete -o default -F _rondo rondo
