# SPDX-License-Identifier: BSD-3-Clause
# jobs.sh: sourced inside of guests. Jobs of two ranks, started by hand as users do it across nodes: rank, size,
# address and secret in the environment. In one guest each rank has an RDMA device of its own.
net_rank=$build/tests/net/net_rank
export RONDO_SECRET=a-secret-for-the-tests RONDO_LOG=none RONDO_TRANSPORT=verbs RONDO_SIZE=2

rank() { # RANK SECONDS COMMAND...
    local rank=$1 seconds=$2 devices=("$RXE_DEV" "${RXE_PEER_DEV:-$RXE_DEV}")
    shift 2
    RONDO_RANK=$rank RONDO_VERBS_DEVICES=${RONDO_VERBS_DEVICES-${devices[rank]}} timeout "$seconds" "$@"
}

job() { # SECONDS COMMAND...: both ranks here
    local first status
    export RONDO_ADDRESS=127.0.0.1:7001
    rank 0 "$@" &
    first=$!
    rank 1 "$@"
    status=$?
    wait $first && return $status
}

good() { # SECONDS ARGUMENTS...: both say so
    job "$1" "$net_rank" "${@:2}" >"$scratch/job" 2>&1
    cat "$scratch/job"
    [ "$(grep -c 'good$' "$scratch/job")" = 2 ]
}

no_queue_is_left() { [ "$(rdma resource show qp | grep -vc 'type GSI')" = 0 ]; }

# A job over TCP between two hosts with one wire between them, which are namespaces of this guest.
good_over() { # SECONDS "WHAT NETEM DOES" ARGUMENTS...
    local seconds=$1 wire=$2 i pids=() status=0
    shift 2
    ip netns add host0 && ip netns add host1 &&
        ip link add end netns host0 type veth peer name end netns host1 || return
    for i in 0 1; do
        ip -n host$i addr add 10.78.0.$((1 + i))/24 dev end
        ip -n host$i link set lo up
        ip -n host$i link set end up
        # shellcheck disable=SC2086 # words
        ip netns exec host$i tc qdisc add dev end root netem $wire || return
    done
    for i in 0 1; do
        # A guest that gets no processor for seconds is no host that is gone.
        ip netns exec host$i env RONDO_TRANSPORT=tcp RONDO_RANK=$i RONDO_HOST_ID=$i RONDO_ADDRESS=10.78.0.1:7001 \
            RONDO_TCP_TIMEOUT=100 timeout "$seconds" "$net_rank" "$@" >"$scratch/$i" 2>&1 &
        pids+=($!)
    done
    for i in 0 1; do wait "${pids[i]}" || status=1; done
    cat "$scratch/0" "$scratch/1"
    ip netns exec host0 tc -s qdisc show dev end | tee "$scratch/wire"
    grep -q 'dropped [1-9]' "$scratch/wire" || status=1 # else nothing was tested
    ip netns del host0
    ip netns del host1
    return $status
}

# A job that makes calls without end, in the background; its ranks write to $scratch/0 and 1.
calls_begin() { # BYTES
    local i
    export RONDO_ADDRESS=127.0.0.1:7001
    rm -f "$scratch/0" "$scratch/1"
    rank 0 100 "$net_rank" calls "$1" >"$scratch/0" 2>&1 &
    rank 1 100 "$net_rank" calls "$1" >"$scratch/1" 2>&1 &
    for i in {1..200}; do
        [ "$(cat "$scratch/0" "$scratch/1" 2>/dev/null | grep -c 'calls$')" = 2 ] && return
        sleep 0.1
    done
    cat "$scratch/0" "$scratch/1"
    return 1
}

# What a rank said in the end: an error that names the other; 2 s after the call began on a machine that is idle.
named() { # RANK
    local said
    said=$(grep 'after' "$scratch/$1")
    echo "rank $1 said: $said"
    [[ $said =~ after\ ([0-9]+)\.[0-9]\ s ]] && [ "${BASH_REMATCH[1]}" -lt 25 ] && [[ $said == *"ank $((1 - $1))"* ]]
}
