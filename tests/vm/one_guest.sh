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
    ib_write_lat -d "$RXE_PEER_DEV" -F -s 8 -n 500 >"$scratch/server" 2>&1 &
    sleep 0.5
    ib_write_lat -d "$RXE_DEV" -F -s 8 -n 500 "$RXE_PEER_IP" && wait $!
}

check "two devices are active" devices_are_there
check "ib_write_lat writes from one device to the other" tools_of_others_write
