#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# two_guests.sh: what is tested inside of two guests on one Ethernet; both run it, $RXE_NODE tells which it is.
# Two kernels share neither memory nor process ids: to Rondo they are two hosts. $1: the build folder.
set -u
. "$(dirname "$0")/checks.sh"

writes_between_guests() { # node 1 listens; node 2 tries until it does
    local i
    if [ "$RXE_NODE" = 1 ]; then
        timeout 60 ib_write_lat -d "$RXE_DEV" -F -s 8 -n 200
        return
    fi
    for i in {1..40}; do
        ib_write_lat -d "$RXE_DEV" -F -s 8 -n 200 "$RXE_PEER_IP" && return
        sleep 0.5
    done
    return 1
}

check "host $RXE_NODE writes to the other with ib_write_lat" writes_between_guests
