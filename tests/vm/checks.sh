# SPDX-License-Identifier: BSD-3-Clause
# checks.sh: sourced inside of guests. A check is a name and a command; what a failing one said is shown below it.
scratch=$(mktemp -d)

check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok - $name"
    else
        if [ -n "${known:-}" ]; then
            echo "ok - $name # skip: it failed; $known"
        else
            echo "not ok - $name"
        fi
        tail -n 25 "$scratch/said" | sed 's/^/# /'
    fi
}

# A check that is known to fail now and then: then it is shown with the reason, and counts as skipped.
check_shaky() { # WHY NAME COMMAND...
    local known=$1
    shift
    check "$@"
}
