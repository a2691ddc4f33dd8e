#compdef rondo
# SPDX-License-Identifier: BSD-3-Clause
# Completion of the `rondo` command for zsh; rondo.bash says where words come from.
_rondo() {
    local -a table words_ values
    local line name value accepted help
    if ((CURRENT == 2)); then
        table=("${(@f)$(rondo --complete 2>/dev/null)}")
    else
        table=("${(@f)$(rondo --complete $words[2] 2>/dev/null)}")
    fi
    for line in $table; do
        IFS=$'\t' read -r name value accepted help <<<"$line"
        if [[ $name == $words[CURRENT-1] && $value != - ]]; then
            [[ $accepted != - ]] && compadd -- ${=accepted} || _files
            return
        fi
        words_+=("${name//:/\\:}:${help}")
    done
    _describe -o 'word' words_ || _files
}
_rondo "$@"
