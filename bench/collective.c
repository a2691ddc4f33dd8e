/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.c - the table of collectives, and what follows from it. */
#include "bench/collective.h"

#include <string.h>

enum bus { BUS_ONE, BUS_OTHERS, BUS_TWICE_OTHERS, BUS_TWO }; /* 1, (n-1)/n, 2(n-1)/n, 2 */

static const struct row {
    const char *name;
    bool long_input, long_output; /* ranks * count elements instead of count */
    bool reduces, rooted, in_place;
    enum bus bus;
    int messages; /* between pairs; 0: it is not of pairs */
    bool empty;   /* no data */
} rows[BENCH_QUESTIONS] = {
    [BENCH_ALL_REDUCE] = {"all_reduce", false, false, true, false, true, BUS_TWICE_OTHERS, 0,
                          false},
    [BENCH_REDUCE] = {"reduce", false, false, true, true, true, BUS_ONE, 0, false},
    [BENCH_BROADCAST] = {"broadcast", false, false, false, true, true, BUS_ONE, 0, false},
    [BENCH_ALL_GATHER] = {"all_gather", false, true, false, false, true, BUS_OTHERS, 0, false},
    [BENCH_REDUCE_SCATTER] = {"reduce_scatter", true, false, true, false, true, BUS_OTHERS, 0,
                              false},
    [BENCH_ALL_TO_ALL] = {"all_to_all", true, true, false, false, true, BUS_OTHERS, 0, false},
    [BENCH_GATHER] = {"gather", false, true, false, true, true, BUS_OTHERS, 0, false},
    [BENCH_SCATTER] = {"scatter", true, false, false, true, true, BUS_OTHERS, 0, false},
    [BENCH_BARRIER] = {"barrier", .bus = BUS_ONE, .empty = true},
    [BENCH_SENDRECV] = {"sendrecv", .bus = BUS_ONE},
    [BENCH_LATENCY] = {"latency", .bus = BUS_ONE, .messages = 2},
    [BENCH_BANDWIDTH] = {"bandwidth", .bus = BUS_ONE, .messages = BENCH_WINDOW},
    [BENCH_BIDIRECTIONAL] = {"bidirectional", .bus = BUS_TWO, .messages = BENCH_WINDOW},
    [BENCH_DUP] = {"dup", .bus = BUS_ONE, .empty = true},
    [BENCH_OPEN] = {"open", .bus = BUS_ONE, .empty = true},
    [BENCH_ALL_GATHER_V] = {"all_gather_v", false, true, false, false, true, BUS_OTHERS, 0, false},
    [BENCH_REDUCE_SCATTER_V] = {"reduce_scatter_v", true, false, true, false, true, BUS_OTHERS, 0,
                                false},
    [BENCH_ALL_TO_ALL_V] = {"all_to_all_v", true, true, false, false, false, BUS_OTHERS, 0, false},
    [BENCH_TRACE] = {"trace", .bus = BUS_ONE},
};

const char *bench_collective_name(enum bench_collective collective)
{
    return rows[collective].name;
}

int bench_collective_find(const char *name)
{
    int found = 0;

    while (found < BENCH_QUESTIONS && strcmp(rows[found].name, name))
        found++;
    return found < BENCH_QUESTIONS ? found : -1;
}

static const char *const memories[BENCH_MEMORIES] = {"host", "shared", "registered", "cuda"};

const char *bench_memory_name(enum bench_memory memory)
{
    return memories[memory];
}

int bench_memory_find(const char *name)
{
    int found = 0;

    while (found < BENCH_MEMORIES && strcmp(memories[found], name))
        found++;
    return found < BENCH_MEMORIES ? found : -1;
}

bool bench_collective_reduces(enum bench_collective collective)
{
    return rows[collective].reduces;
}

bool bench_collective_is_rooted(enum bench_collective collective)
{
    return rows[collective].rooted;
}

bool bench_collective_has_in_place(enum bench_collective collective)
{
    return rows[collective].in_place;
}

bool bench_collective_has_counts(enum bench_collective collective)
{
    return collective >= BENCH_ALL_GATHER_V && collective <= BENCH_ALL_TO_ALL_V;
}

bool bench_collective_has_size(enum bench_collective collective)
{
    return !rows[collective].empty;
}

bool bench_collective_is_of_pairs(enum bench_collective collective)
{
    return rows[collective].messages > 0;
}

bool bench_collective_has_algorithm(enum bench_collective collective)
{
    return collective < BENCH_SENDRECV || collective == BENCH_ALL_GATHER_V ||
           collective == BENCH_REDUCE_SCATTER_V || collective == BENCH_TRACE;
}

int bench_partner(int rank, int size)
{
    int half = size / 2;

    return rank < half ? rank + half : rank < 2 * half ? rank - half : -1;
}

int bench_pair_source(enum bench_collective collective, int rank, int size)
{
    int partner = bench_partner(rank, size);

    return collective == BENCH_BANDWIDTH && partner > rank ? -1 : partner;
}

int bench_messages(enum bench_collective collective)
{
    return rows[collective].messages ? rows[collective].messages : 1;
}

double bench_message_rate(enum bench_collective collective, double seconds, int size)
{
    int ways = collective == BENCH_BIDIRECTIONAL ? 2 : 1;

    return ways * (size / 2) / seconds;
}

size_t bench_input_elements(const struct bench_call *call, int size)
{
    return rows[call->collective].long_input ? call->count * (size_t)size : call->count;
}

size_t bench_output_elements(const struct bench_call *call, int size)
{
    return rows[call->collective].long_output ? call->count * (size_t)size : call->count;
}

size_t bench_in_place_offset(const struct bench_call *call, int rank)
{
    const struct row *row = &rows[call->collective];

    return row->long_input != row->long_output ? call->count * (size_t)rank : 0;
}

static bool has_blocks(enum bench_collective collective)
{
    return rows[collective].long_input || rows[collective].long_output;
}

size_t bench_count(enum bench_collective collective, size_t bytes, size_t element_bytes, int size)
{
    size_t elements = bytes / element_bytes;

    if (rows[collective].empty)
        return 0;
    return has_blocks(collective) ? elements / (size_t)size : elements;
}

size_t bench_bytes(enum bench_collective collective, size_t count, size_t element_bytes, int size)
{
    return count * element_bytes * (has_blocks(collective) ? (size_t)size : 1);
}

size_t bench_traffic(const struct bench_call *call, size_t element_bytes, int rank, int size)
{
    const struct row *row = &rows[call->collective];
    bool from_root = call->collective == BENCH_BROADCAST || call->collective == BENCH_SCATTER;
    bool to_root = row->rooted && !from_root;
    bool at_root = rank == call->root;
    size_t read = from_root && !at_root ? 0 : bench_input_elements(call, size);
    size_t written = to_root && !at_root ? 0 : bench_output_elements(call, size);

    if (row->empty)
        return 0;
    /* In place, what a rank would send itself is there; others may want to read it nevertheless. */
    if (call->in_place && !row->reduces && (!row->rooted || at_root)) {
        written -= call->count;
        if (call->collective != BENCH_ALL_GATHER && call->collective != BENCH_BROADCAST)
            read -= call->count;
    }
    return (read + written) * element_bytes;
}

double bench_bus_factor(enum bench_collective collective, int size)
{
    double others = (double)(size - 1) / size;

    switch (rows[collective].bus) {
    case BUS_OTHERS:
        return others;
    case BUS_TWICE_OTHERS:
        return 2 * others;
    case BUS_TWO:
        return 2;
    case BUS_ONE:
        break;
    }
    return 1;
}
