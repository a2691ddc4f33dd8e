#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# two_guests.sh: what is tested inside of two guests on one Ethernet; both run it, $RXE_NODE tells which it is.
# Two kernels share neither memory nor process ids: to Rondo they are two hosts. $1: the build folder.
set -u
build=$1
. "$(dirname "$0")/checks.sh"
. "$(dirname "$0")/jobs.sh"

host_of_the_job() { # PORT COMMAND...: this host's rank
    local port=$1 others=10.77.0.1
    shift
    export RONDO_ADDRESS=$others:$port
    rank $((RXE_NODE - 1)) 200 "$@" >"$scratch/job" 2>&1
    cat "$scratch/job"
    grep -q 'good$' "$scratch/job"
}

auto_takes_verbs() {
    export RONDO_TRANSPORT=auto RONDO_LOG=debug
    host_of_the_job 7003 "$net_rank" sleep 0 && grep -q "is connected with rank .* over 1 rails" "$scratch/job"
}

# Every eighth call: the wire is another one, and all of them ran in one guest.
check "host $RXE_NODE: the matrix of collectives is right" host_of_the_job 7001 "$net_rank" matrix 6 8
check "host $RXE_NODE: groups, streams and splits are right" host_of_the_job 7002 "$net_rank" bodies
check "host $RXE_NODE: verbs is what is taken if nothing is said" auto_takes_verbs
