#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# verbs.sh: the tests over RDMA verbs, in guests (rxe-vm). Speaks TAP: what guests print as "ok NAME" is passed on.
# $1: the build folder, whose programs the guests run; $2: a part, or all of them without it. one: a guest that is two
# hosts in one; gpu: one more, for buffers of GPUs; two: two guests as two hosts.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
parts=${2:-one gpu two}
ran=0
# Jobs take half the time without AVX, which is emulated slowly and would be taken for the best.
export RXE_VM_CPU=max,-erms,-smap,-avx,-avx2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A larger share where other tests run beside this one, as guests take the longest. Linux shares cores among sessions,
# where it groups them, and meson gives each test one of its own.
if [ "$(ps -o sid= -p $$ | tr -d ' ')" = $$ ]; then
    { echo -5 >/proc/self/autogroup; } 2>/dev/null
    renice -n -5 -p $$ >/dev/null 2>&1
fi

# Passes a guest's output on; a guest that did not end well is a failed test of its own.
report() { # NAME STATUS OUTPUT
    grep -E '^(ok|not ok|  #|#)' "$3"
    ran=$((ran + $(grep -cE '^(ok|not ok)' "$3")))
    ran=$((ran + 1))
    if [ "$2" = 0 ]; then
        echo "ok - $1 boots and ends"
    else
        echo "not ok - $1 boots and ends: status $2"
        tail -n 25 "$3" | sed 's/^/# /'
    fi
}

one_guest() { # SCRIPT
    "$here/rxe-vm" -t 2500 -- "$here/$1" "$build" >"$scratch/one" 2>&1
    report "a guest" $? "$scratch/one"
}

two_guests() {
    local pids=() node
    for node in 1 2; do
        "$here/rxe-vm" -t 2500 -m 1024 -N $node:"$scratch" -- "$here/two_guests.sh" "$build" \
            >"$scratch/host$node" 2>&1 &
        pids+=($!)
    done
    for node in 1 2; do
        wait "${pids[node - 1]}"
        report "host $node of two" $? "$scratch/host$node"
    done
}

"$here/rxe-vm" -p >&2 || { echo "Bail out! There is no kernel for the guest."; exit 1; }
for part in $parts; do
    case $part in
    one) one_guest one_guest.sh ;;
    gpu) one_guest gpu_direct.sh ;;
    two) two_guests ;;
    esac
done
echo "1..$ran"
