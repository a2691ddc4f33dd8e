#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gpu_direct.sh: what is tested inside of a guest of GPU buffers over RDMA. The driver is the one of standin, whose
# device memory soft-RoCE may register as it is, and by dmabuf where direct_rank.c stands in for that. $1: the build
# folder.
set -u
build=$1 rondo=$1/cli/rondo direct_rank=$1/tests/gpu/direct_rank
. "$(dirname "$0")/checks.sh"
. "$(dirname "$0")/jobs.sh"

direct_environment() {
    export LD_LIBRARY_PATH=$build/standin RONDO_CUDA_IMAGE=$build/tests/cuda/kernels.so
    export CUDA_STANDIN_GUARD=0 RONDO_LOG=info RONDO_GPUDIRECT=$1
}

# Both ranks are right, and say what we expect of them.
direct() { # RONDO_GPUDIRECT "SENTENCE" ARGUMENTS...
    local sentence=$2
    direct_environment "$1"
    shift 2
    job 100 "$direct_rank" "$@" >"$scratch/job" 2>&1
    tail -n 20 "$scratch/job"
    [ "$(grep -c 'good$' "$scratch/job")" = 2 ] && [ "$(grep -cE "$sentence" "$scratch/job")" -ge 2 ] &&
        no_queue_is_left
}

# Two hosts with two ranks each, whose messages go through shared memory within a host.
direct_over_hosts() { # RONDO_GPUDIRECT "SENTENCE" ARGUMENTS...
    local sentence=$2 rank pids=() devices=("$RXE_DEV" "$RXE_PEER_DEV")
    direct_environment "$1"
    shift 2
    for rank in 0 1 2 3; do
        RONDO_SIZE=4 RONDO_RANK=$rank RONDO_HOST_ID=$((rank / 2)) RONDO_VERBS_DEVICES=${devices[rank / 2]} \
            RONDO_TRANSPORT=auto RONDO_ADDRESS=127.0.0.1:7001 timeout 100 "$direct_rank" "$@" >"$scratch/$rank" 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
    cat "$scratch"/[0-3] >"$scratch/job"
    tail -n 20 "$scratch/job"
    [ "$(grep -c 'good$' "$scratch/job")" = 4 ] && [ "$(grep -cE "$sentence" "$scratch/job")" = 4 ] && no_queue_is_left
}

direct_killed_peer() {
    local i first
    direct_environment peer
    export RONDO_ADDRESS=127.0.0.1:7001
    rank 0 100 "$direct_rank" plain calls >"$scratch/0" 2>&1 &
    first=$!
    rank 1 100 "$direct_rank" plain calls >"$scratch/1" 2>&1 &
    for i in {1..300}; do
        [ "$(cat "$scratch/0" "$scratch/1" | grep -c 'calls$')" = 2 ] && break
        sleep 0.1
    done
    # Of the two processes, which have the same name, the one whose rank is 1.
    for i in $(pgrep -f "^$direct_rank"); do
        tr '\0' '\n' <"/proc/$i/environ" | grep -q '^RONDO_RANK=1$' && kill -9 "$i"
    done
    wait $first
    tail -n 5 "$scratch/0"
    grep -q 'after calls: .*ank 1' "$scratch/0"
}

doctor_tells_of_gpu_direct() {
    direct_environment auto
    CUDA_STANDIN_DEVICES=1 "$rondo" doctor >"$scratch/doctor"
    grep GPUDirect "$scratch/doctor"
    grep -q "note *GPUDirect: $RXE_DEV and GPU 0: neither by dmabuf nor by peer memory" "$scratch/doctor" &&
        grep -q "note *GPUDirect: $RXE_PEER_DEV and GPU 0: neither" "$scratch/doctor"
}

directly="GPU buffers go to other nodes by"
check "GPU buffers go from device to device by peer memory" direct peer "$directly peer memory" plain matrix 40
check "GPU buffers go from device to device by dmabuf" direct auto "$directly dmabuf" dmabuf matrix 40
check "messages go from device to device" direct dmabuf "$directly dmabuf" dmabuf messages
check "graphs with calls of several hosts are replayed" direct dmabuf "$directly dmabuf" dmabuf graphs
check "ranks of two hosts with two ranks each reach all others" \
    direct_over_hosts dmabuf "$directly dmabuf" dmabuf matrix 24
check "an adapter that writes elsewhere is found out, and not used" \
    direct auto "GPU buffers are staged between nodes" astray matrix 16
check "an adapter that refuses memory of the device is not used" \
    direct auto "GPU buffers are staged between nodes" refused matrix 16
check "an adapter that has room for little of it writes to the host" \
    direct auto "go through slots of the host: .*refused .* bytes" window matrix 40
check "an adapter that knows no dmabuf is not used" \
    direct auto "GPU buffers are staged between nodes" plain matrix 16
check "GPU buffers are staged if that is asked for" direct off "works on CUDA device" dmabuf matrix 16
check "an abort lets streams go whose messages are on their way" direct dmabuf "$directly dmabuf" dmabuf abort
check "rondo doctor says which adapter could use memory of which GPU" doctor_tells_of_gpu_direct
check "a peer that is killed with memory registered is named" direct_killed_peer
