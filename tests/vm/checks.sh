# SPDX-License-Identifier: BSD-3-Clause
# checks.sh: sourced inside of guests. A check is a name and a command. Below it is what a failing one said, and how
# long it took.
scratch=$(mktemp -d)

check() { # NAME COMMAND...
    local name=$1 begin=$SECONDS
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        tail -n 25 "$scratch/said" | sed 's/^/# /'
    fi
    echo "# took $((SECONDS - begin)) s"
}
