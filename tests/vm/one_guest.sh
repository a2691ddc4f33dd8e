#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# one_guest.sh: what is tested inside of a guest that is alone; prints "ok NAME" or "not ok NAME" for each.
# Both ends of its veth pair have a soft-RoCE device, so it is two hosts in one. $1: the build folder.
set -u
. "$(dirname "$0")/checks.sh"

devices_are_there() {
    local device
    for device in "$RXE_DEV" "$RXE_PEER_DEV"; do
        grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state" || return 1
    done
}

# The yardstick of everything here: RDMA writes by the tool that everybody measures with.
tools_of_others_write() {
    local i
    ib_write_lat -d "$RXE_PEER_DEV" -F -s 8 -n 500 >"$scratch/server" 2>&1 &
    for i in {1..40}; do
        sleep 0.25
        ib_write_lat -d "$RXE_DEV" -F -s 8 -n 500 "$RXE_PEER_IP" && return
    done
    return 1
}

rondo=$1/cli/rondo

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

check "two devices are active" devices_are_there
check "ib_write_lat writes from one device to the other" tools_of_others_write
check "rondo doctor lists devices and addresses" doctor_lists_devices
check "rondo doctor says what is missing" doctor_says_what_is_missing
