/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective.h - what `rondo bench` measures: collectives, the lengths of their buffers, and the
 * two bandwidths.
 *
 * "bytes" is the size S of the full vector, as in nccl-tests: for all_gather, reduce_scatter,
 * all_to_all, gather and scatter that is ranks * count * element size, for the others count *
 * element size. With time t,
 *
 *     algbw = S / t                          what the caller sees
 *     busbw = algbw * factor(collective, n)  what each link carries if the least data moves
 */
#ifndef RONDO_BENCH_COLLECTIVE_H
#define RONDO_BENCH_COLLECTIVE_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_collective {
    BENCH_ALL_REDUCE = 0,
    BENCH_REDUCE,
    BENCH_BROADCAST,
    BENCH_ALL_GATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_ALL_TO_ALL,
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_BARRIER,
    BENCH_SENDRECV, /* everybody sends to its right and receives from its left */
    BENCH_COLLECTIVES,
    /* Questions that are no collective, which "all" leaves out. The first three are between pairs,
     * rank r < n/2 and rank r + n/2; a time is that of a message. */
    BENCH_LATENCY = BENCH_COLLECTIVES, /* a message goes there, and one comes back */
    BENCH_BANDWIDTH,     /* BENCH_WINDOW messages in a row go one way, then an answer comes back */
    BENCH_BIDIRECTIONAL, /* as many go both ways at once */
    BENCH_DUP,           /* a communicator over the ranks of another is opened, and closed */
    BENCH_OPEN,          /* likewise, as the first one is opened: the ranks have to meet */
    BENCH_ALL_GATHER_V,  /* with a list of counts, which are equal; so the next two */
    BENCH_REDUCE_SCATTER_V,
    BENCH_ALL_TO_ALL_V,
    BENCH_TRACE, /* the calls of a file, in order */
    BENCH_QUESTIONS
};

enum { BENCH_WINDOW = 64, BENCH_GRAPH_CALLS = 16 /* a graph has no more of them */ };

/* This says where the buffers are. */
enum bench_memory {
    BENCH_MEMORY_HOST = 0,
    BENCH_MEMORY_SHARED,     /* that peers map, where the library has such; else as host */
    BENCH_MEMORY_REGISTERED, /* as host, and given to the library before; likewise */
    BENCH_MEMORY_CUDA,       /* of the rank's device */
    BENCH_MEMORIES
};

/* One call, the same on every rank. */
struct bench_call {
    enum bench_collective collective;
    rondo_type type;
    rondo_op op;
    int root;
    size_t count; /* elements, as in rondo.h */
    bool in_place;
    bool queued;        /* on the stream of the rank's device; else it returns when it is done */
    char algorithm[48]; /* "": the library's choice; a plan of a file has a long name */
};

const char *bench_collective_name(enum bench_collective collective);
/* -1 if there is none of that name. */
int bench_collective_find(const char *name);
const char *bench_memory_name(enum bench_memory memory);
/* -1 if there is none of that name. */
int bench_memory_find(const char *name);
bool bench_collective_reduces(enum bench_collective collective);
bool bench_collective_is_rooted(enum bench_collective collective);
bool bench_collective_has_in_place(enum bench_collective collective);
/* True: the call takes a list of counts, one for each rank. */
bool bench_collective_has_counts(enum bench_collective collective);
/* False: there are no data, so there is nothing to sweep over. */
bool bench_collective_has_size(enum bench_collective collective);
bool bench_collective_is_of_pairs(enum bench_collective collective);
/* False: it is made of messages, or of opening, so that no algorithm runs. */
bool bench_collective_has_algorithm(enum bench_collective collective);

/* The other rank of the pair; -1: none, the number of ranks is odd, or one. */
int bench_partner(int rank, int size);
/* The rank whose input a rank of a pair receives; -1: none. */
int bench_pair_source(enum bench_collective collective, int rank, int size);
/* Messages in a row that a call consists of; a time is that of one. */
int bench_messages(enum bench_collective collective);
/* Messages per second of all pairs together. */
double bench_message_rate(enum bench_collective collective, double seconds, int size);

/* Elements of the two buffers; what a rank without the root's role ignores is counted too. */
size_t bench_input_elements(const struct bench_call *call, int size);
size_t bench_output_elements(const struct bench_call *call, int size);
/* Elements from the start of the longer buffer to the shorter one, when a rank calls in place. */
size_t bench_in_place_offset(const struct bench_call *call, int rank);

/*
 * The count that makes a full vector of at most `bytes`; and the bytes of the full vector of a
 * count.
 */
size_t bench_count(enum bench_collective collective, size_t bytes, size_t element_bytes, int size);
size_t bench_bytes(enum bench_collective collective, size_t count, size_t element_bytes, int size);
/* Bytes that a rank's memory has to be read and written at least, when every rank's input is read
 * once and every result is written once. */
size_t bench_traffic(const struct bench_call *call, size_t element_bytes, int rank, int size);
double bench_bus_factor(enum bench_collective collective, int size);

#ifdef __cplusplus
}
#endif
#endif
