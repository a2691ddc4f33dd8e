#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench_guest.sh: inside of a guest, all_reduce and broadcast of two ranks over soft-RoCE beside what perftest gets from
# the same two devices, and what bare_verbs.c gets, which does nothing else, in turns. $1: the build folder; $2: lat
# (8 bytes beside ib_write_lat), bw (beside ib_write_bw) or both; $3: rounds; $4: sizes of bw in MiB. `./dev bench-vm`
# builds, and runs this. A guest under emulation is slow: only ratios mean something.
set -u
build=$1 what=${2:-both} rounds=${3:-5} sizes=${4:-1 4 16}
export RONDO_SECRET=a-secret-for-the-benchmark
scratch=$(mktemp -d)
cat >"$scratch/enter" <<'END'
#!/bin/sh
host=$1
shift
RONDO_VERBS_DEVICES=rxe$host exec "$@"
END
chmod 700 "$scratch/enter"

gid() { # DEVICE: the index of its RoCE v2 address of IPv4
    local index at=/sys/class/infiniband/$1/ports/1
    for index in {0..9}; do
        if grep -qs 'RoCE v2' "$at/gid_attrs/types/$index" && grep -qi 'ffff:' "$at/gids/$index"; then
            echo "$index"
            return
        fi
    done
}

pair() { # PROGRAM OPTIONS...: both ends of a program of perftest; the row of numbers that the client prints
    local program=$1 server i
    shift
    timeout 100 "$program" -d "$RXE_DEV" -x "$(gid "$RXE_DEV")" -p 18555 -F "$@" >/dev/null 2>&1 &
    server=$!
    for i in {1..100}; do # until it listens: a client that comes too early gives up, and a server never does
        grep -qi ":$(printf %x 18555) .* 0A " /proc/net/tcp /proc/net/tcp6 && break
        sleep 0.1
    done
    "$program" -d "$RXE_PEER_DEV" -x "$(gid "$RXE_PEER_DEV")" -p 18555 -F "$@" "$RXE_IP" 2>/dev/null |
        awk '/^ *[0-9]+ +[0-9]+ /'
    wait $server
}

rondo() { # COLLECTIVE SIZES OPTIONS...: lines of "bytes median_us min_us busbw"
    local collective=$1 sizes=$2
    shift 2
    "$build/cli/rondo" bench "$collective" -n 2 --hosts 2 --enter "$scratch/enter" --meet 127.0.0.1:7009 \
        --transport verbs --bytes "$sizes" --csv "$scratch/csv" "$@" >"$scratch/said" 2>&1 || cat "$scratch/said" >&2
    awk -F, 'NR > 1 { print $5, $10, $11, $13 }' "$scratch/csv"
}

bare() { # lat or bw: lines of bare_verbs.c
    "$build/tests/vm/bare_verbs" "$RXE_DEV" "$RXE_PEER_DEV" "$1" 2
}

median() { # KEY FILE: of its lines "KEY NUMBER"
    awk -v key="$1" '$1 == key { print $2 }' "$2" | sort -g | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'
}

# In an all_reduce both ranks write at once, in ib_write_lat one after the other. So beside it: the time per write when
# both do and wait for its completion. Of ib_write_lat the mean, as Rondo's and the other are means, and the median.
latency() {
    local round
    for ((round = 0; round < rounds; round++)); do
        pair ib_write_lat -s 8 -n 3000 | awk '{ print "write", $6; print "typical", $5 }'
        rondo all_reduce 8 --iterations 500 --rounds 2 --seconds 0.2 | awk '{ print "rondo", $2 }'
        pair ib_write_bw -b -t 1 -s 8 -n 3000 | awk '{ print "both", 2 / $5 }'
        bare lat
    done >"$scratch/lat"
    paste -s -d ' ' "$scratch/lat" | sed 's/^/# 8 bytes, us, in turns: /'
    awk -v write="$(median write "$scratch/lat")" -v typical="$(median typical "$scratch/lat")" \
        -v rondo="$(median rondo "$scratch/lat")" \
        -v both="$(median both "$scratch/lat")" -v turns="$(median turns "$scratch/lat")" \
        -v once="$(median at_once "$scratch/lat")" 'BEGIN {
        printf "8 B: ib_write_lat %.1f us (median %.1f), a write each way at once %.1f us; ", write, typical, both
        printf "all_reduce %.1f us: %.2f (%.2f) and %.2f times\n", rondo, rondo / write, rondo / typical, rondo / both
        printf "8 B by bare verbs: in turns %.1f us, an exchange at once %.1f us: %.2f times\n", turns, once,
            once / write
    }'
}

bandwidth() {
    local round mib size perftest
    for ((round = 0; round < rounds; round++)); do
        for mib in $sizes; do
            size=$((mib << 20))
            perftest=(-s "$size" -n $((64 / mib + 4)))
            pair ib_write_bw "${perftest[@]}" | awk -v s="$mib" '{ print "one" s, $4 * 0.001048576 }'
            rondo all_reduce "$size" --seconds 0.5 --rounds 2 | awk -v s="$mib" '{ print "rondo" s, $4 }'
            rondo all_reduce "$size" --dtype int32 --seconds 0.5 --rounds 2 | awk -v s="$mib" '{ print "int" s, $4 }'
            rondo broadcast "$size" --seconds 0.5 --rounds 2 | awk -v s="$mib" '{ print "broadcast" s, $4 }'
            rondo broadcast "$size" --memory shared --seconds 0.5 --rounds 2 | awk -v s="$mib" '{ print "lent" s, $4 }'
            rondo all_reduce "$size" --memory shared --dtype int32 --seconds 0.5 --rounds 2 |
                awk -v s="$mib" '{ print "intlent" s, $4 }'
            pair ib_write_bw -b "${perftest[@]}" | awk -v s="$mib" '{ print "both" s, $4 * 0.000524288 }'
        done
        bare bw
    done >"$scratch/bw"
    for mib in $sizes; do
        grep -E "^[a-z]*$mib " "$scratch/bw" | sed "s/$mib / /" | paste -s -d ' ' |
            sed "s/^/# $mib MiB, GB\/s, in turns: /"
        awk -v mib="$mib" -v one="$(median "one$mib" "$scratch/bw")" -v both="$(median "both$mib" "$scratch/bw")" \
            -v rondo="$(median "rondo$mib" "$scratch/bw")" -v ints="$(median "int$mib" "$scratch/bw")" \
            -v way="$(median "broadcast$mib" "$scratch/bw")" -v lent="$(median "lent$mib" "$scratch/bw")" \
            -v intlent="$(median "intlent$mib" "$scratch/bw")" 'BEGIN {
            printf "%d MiB: ib_write_bw %.4f GB/s one way, %.4f each way if both are busy; ", mib, one, both
            printf "broadcast %.4f GB/s: %.0f %% of one way, ", way, 100 * way / one
            printf "of memory that is lent %.4f GB/s: %.0f %%; ", lent, 100 * lent / one
            printf "all_reduce %.4f GB/s: %.0f %% and %.0f %%, of int32 %.4f GB/s: %.0f %%, ",
                rondo, 100 * rondo / one, 100 * rondo / both, ints, 100 * ints / one
            printf "of int32 in memory that is lent %.4f GB/s: %.0f %%\n", intlent, 100 * intlent / one }'
    done
    awk -v stream="$(median stream "$scratch/bw")" -v messages="$(median messages "$scratch/bw")" \
        -v exchange="$(median exchange "$scratch/bw")" -v crossing="$(median crossing "$scratch/bw")" 'BEGIN {
        printf "bare verbs, 512 KiB: %.4f GB/s one way to who sleeps; copied, waited for and copied %.4f: %.0f %%; ",
            stream, messages, 100 * messages / stream
        printf "both ways %.4f each: %.0f %%, ", exchange, 100 * exchange / stream
        printf "without copies %.4f: %.0f %%\n", crossing, 100 * crossing / stream }'
}

[ "$what" = bw ] || latency
[ "$what" = lat ] || bandwidth
