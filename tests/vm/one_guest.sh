#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# one_guest.sh: what is tested inside of a guest that is alone; prints "ok NAME" or "not ok NAME" for each.
# Both ends of its veth pair have a soft-RoCE device, so it is two hosts in one. $1: the build folder.
set -u
build=$1 rondo=$1/cli/rondo
. "$(dirname "$0")/checks.sh"
. "$(dirname "$0")/jobs.sh"

devices_are_there() {
    local device
    for device in "$RXE_DEV" "$RXE_PEER_DEV"; do
        grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state" || return 1
    done
}

doctor_lists_devices() {
    "$rondo" doctor >"$scratch/doctor"
    cat "$scratch/doctor"
    grep -q "ok *RDMA port: $RXE_DEV port 1 (veth0, .*): RoCE v2, $RXE_IP, GID index" "$scratch/doctor" &&
        grep -q "ok *RDMA port: $RXE_PEER_DEV port 1 .*$RXE_PEER_IP" "$scratch/doctor" &&
        grep -q "ok *RDMA library" "$scratch/doctor" && grep -q "ok *RDMA files: 2 of 2" "$scratch/doctor" &&
        grep -q "ok *RDMA memory: no limit" "$scratch/doctor"
}

doctor_says_what_is_missing() {
    (
        ulimit -l 64
        RONDO_VERBS_ADDRESSES=10.78.0.0/16 "$rondo" doctor >"$scratch/doctor"
    )
    cat "$scratch/doctor"
    grep -q "note *RDMA port: $RXE_DEV port 1 has no address in the range" "$scratch/doctor" &&
        grep -q "note *RDMA memory: .*limited to 0.1 MiB" "$scratch/doctor"
}

many_communicators() { good 1500 lives "$1" && no_queue_is_left; }

over_both_rails() {
    RONDO_VERBS_DEVICES="$RXE_DEV,$RXE_PEER_DEV" good 600 bodies
}

# What the ranks say of their slots, if they may lock so many KiB.
slots_are() { # BYTES KIB
    (ulimit -l "$2" && RONDO_LOG=info job 600 "$net_rank" bodies) >"$scratch/job" 2>&1
    grep -E 'slots of|good$' "$scratch/job"
    [ "$(grep -c "slots of $1 bytes" "$scratch/job")" -ge 2 ] && [ "$(grep -c 'good$' "$scratch/job")" = 2 ]
}

little_locked_memory() { # root may lock what it likes, unless that right is taken away
    export -f job rank
    (ulimit -l 256 && scratch=$scratch job 600 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock \
        "$net_rank" bodies) >"$scratch/job" 2>&1
    cat "$scratch/job"
    grep -q 'locked memory is limited to 256 KiB' "$scratch/job" && no_queue_is_left
}

# Rank 1 may have so many objects of its adapter: the kernel's controller for that counts domains, queues and memory.
with_objects() { # HOW MANY
    local group=$scratch/cgroup/few
    echo "$RXE_PEER_DEV hca_object=$1" >"$group/rdma.max" || return
    export RONDO_ADDRESS=127.0.0.1:7001
    rank 0 60 "$net_rank" sleep 0 >"$scratch/0" 2>&1 &
    # shellcheck disable=SC2016 # expands inside
    rank 1 60 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$net_rank" sleep 0 >"$scratch/1" 2>&1
    wait
    sed "s/^/$1 objects: /" "$scratch/0" "$scratch/1"
}

# One domain, three ranges of memory, two queues: each of them may be the one that is missing. Rank 0 is told by rank 1;
# by its own patience alone it could not say of what.
registrations_run_out() {
    local objects
    mkdir -p "$scratch/cgroup" && mount -t cgroup2 none "$scratch/cgroup" &&
        echo +rdma >"$scratch/cgroup/cgroup.subtree_control" && mkdir -p "$scratch/cgroup/few" || return
    for objects in 0 1 2 3 4 5; do
        with_objects $objects
        grep -q "$RXE_PEER_DEV" "$scratch/1" && grep -q "Rank 1 " "$scratch/0" && no_queue_is_left || return
    done
    with_objects 6
    [ "$(cat "$scratch/0" "$scratch/1" | grep -c 'good$')" = 2 ]
}

# Ranks of both devices; three runs, as opening takes seconds here. More of them by hand: docs/recovery.md.
going_on() {
    local soak=$build/tests/recovery/recovery_soak
    timeout 2000 "$soak" --transport verbs --everywhere --ranks 3 --runs 3 >"$scratch/soak"
    cat "$scratch/soak"
    grep -q "3 runs over verbs, 0 went wrong" "$scratch/soak"
}

killed_peer() {
    calls_begin 1048576 || return
    kill -9 "$(pgrep -f "^$net_rank calls" -n)"
    wait
    named 0 || named 1
}

link_down() {
    calls_begin 1048576 || return
    ip link set veth1 down
    wait
    named 0 && named 1 && grep -qE "rxe[01] port 1" "$scratch/0" "$scratch/1"
}

# Yama's setting, which hosts of tests rarely have: from 1 on a process may not attach to its sister. Heaps open all the
# same; plain memory is not read across processes then, and files of device memory are asked for.
under_yama() {
    local scope said=$scratch/yama
    for scope in 1 3; do # back to less it does not go
        sysctl -qw "kernel.yama.ptrace_scope=$scope" || return
        setpriv --bounding-set=-sys_ptrace "$rondo" doctor >"$said"
        grep "cross-memory attach" "$said"
        grep -q "forbidden by Yama: kernel.yama.ptrace_scope is $scope" "$said" &&
            grep -q "ok *heaps of other ranks" "$said" || return
        RONDO_LOG=info setpriv --bounding-set=-sys_ptrace "$rondo" bench all_reduce -n 3 -b 8,2M --iterations 2 \
            --rounds 1 >"$said" 2>&1 && grep -q "wrong values: 0 OK" "$said" || return
    done
}

# Mostly waiting, in namespaces and a folder of its own: it is under way beside the others.
(scratch=$(mktemp -d)
    check "the matrix of collectives is right over TCP with 1 % loss and 20 ms delay" \
        good_over 1000 "delay 20ms loss 1%" matrix 8 20) >"$scratch/over_a_bad_wire" &
bad_wire=$!

check "two devices are active" devices_are_there
check "rondo doctor lists devices and addresses" doctor_lists_devices
check "rondo doctor says what is missing" doctor_says_what_is_missing
check "the matrix of collectives is right over verbs" good 600 matrix 5
check "groups, streams and splits are right over verbs" good 600 bodies
check "they are right over two rails" over_both_rails
check "nothing is left of many communicators" many_communicators 12
check "messages are long where the kernel moves the bytes" slots_are $((512 << 10)) unlimited
check "they are not where little memory may be locked" slots_are $((128 << 10)) 65536
check "memory that cannot be locked is a sentence" little_locked_memory
check "an adapter that has no room for one more thing is named by all ranks" registrations_run_out
check "a killed peer is named" killed_peer
check "ranks that are left go on with each other after others were killed" going_on
check "ranks that may not attach to each other work all the same" under_yama
wait $bad_wire
cat "$scratch/over_a_bad_wire"
# Last: routes go with the link.
check "a link that went down is named, with the port" link_down
