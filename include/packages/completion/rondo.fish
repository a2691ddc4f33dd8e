# SPDX-License-Identifier: BSD-3-Clause
# Completion of the `rondo` command for fish; rondo.bash says where words come from.
function __rondo_words
    set -l given (commandline -opc)
    set -l table
    if test (count $given) -eq 1
        set table (rondo --complete 2>/dev/null)
    else
        set table (rondo --complete $given[2] 2>/dev/null)
    end
    for line in $table
        set -l column (string split \t -- $line)
        if test (count $given) -gt 1; and test "$column[1]" = "$given[-1]"; and test "$column[2]" != -
            if test "$column[3]" != -
                string split ' ' -- $column[3]
            else
                __fish_complete_path (commandline -ct)
            end
            return
        end
    end
    for line in $table
        set -l column (string split \t -- $line)
        printf '%s\t%s\n' $column[1] $column[4]
    end
end
complete -c rondo -f -a '(__rondo_words)'
complete -c rondo -F -n 'test (count (commandline -opc)) -gt 1'
