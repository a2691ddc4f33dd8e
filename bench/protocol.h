/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protocol.h - what `rondo bench` and its workers say to each other.
 *
 * One abstract Unix socket of type SOCK_SEQPACKET, one connection per rank, one struct per message.
 * A worker says hello when its library is open; then it answers each command with one reply, and
 * sleeps in read() in between, so that the workers of several libraries can stand side by side
 * without disturbing each other. End of file is "quit" for a worker and "died" for the parent. Both
 * programs come from one build, so the structs need no versions.
 */
#ifndef RONDO_BENCH_PROTOCOL_H
#define RONDO_BENCH_PROTOCOL_H

#include "bench/collective.h"

#include <stdint.h>

enum {
    BENCH_BATCHES_MAX = 64,    /* per command */
    BENCH_LINES_MAX = 256,     /* of a step */
    BENCH_SENTENCE_MAX = 1024, /* with the final 0 */
    BENCH_NAME_MAX = 64,       /* of the control socket, with the final 0 */
    BENCH_ALGORITHM_MAX = 48   /* with the final 0 */
};

enum bench_status {
    BENCH_OK = 0,
    BENCH_UNAVAILABLE, /* the library lacks this, see the sentence; nothing was called */
    BENCH_FAILED       /* the library reported an error; it is only fit for closing */
};

struct bench_hello {
    uint32_t status; /* enum bench_status */
    int32_t rank, size;
    int32_t devices;       /* that the rank sees; 0: it works on the host */
    uint64_t device_bytes; /* memory of its own */
    char version[128];
    char sentence[BENCH_SENTENCE_MAX];
};

/* A line of a step: a call, or computing. */
struct bench_line {
    int32_t collective; /* enum bench_collective; -1: computing */
    int32_t type, op, root;
    int32_t communicator; /* number of the one that it is made on */
    uint64_t count;
    double seconds; /* of computing */
};

/* A part of a step says which of its lines are gone through. */
enum bench_part { BENCH_ALL_LINES = 0, BENCH_CALLS_ONLY, BENCH_WORK_ONLY };

struct bench_command {
    struct bench_call call; /* without a step all of it, else what the calls of the lines share */
    enum bench_memory memory;
    bool check;      /* fill, call once, compare; no timing */
    bool graph;      /* queued calls are recorded in a graph, which is launched */
    bool rewrite;    /* the owner writes its input anew before every call; batches of one call */
    int32_t batches; /* 1 .. BENCH_BATCHES_MAX */
    int32_t batch_calls;   /* calls in a row between two looks at the clock, or steps */
    int32_t divisor;       /* a time is that of a call or step, divided by this */
    int32_t buffers;       /* calls, or steps, take turns on so many buffers; at least 1 */
    uint64_t buffer_bytes; /* largest input or output of the sweep: allocate once */
    uint64_t rotate_bytes; /* cold caches: walk through at least this much memory; 0: stay */
    int32_t communicators; /* that a step needs */
    bool background;       /* its calls begin, and all are waited for at its end */
    enum bench_part part;
    int32_t line_count; /* 0: there is no step, but the call */
    struct bench_line lines[BENCH_LINES_MAX];
};

struct bench_reply {
    uint32_t status;                       /* enum bench_status */
    uint64_t wrong;                        /* elements, and damaged guard zones; of a check */
    double rank_bytes, communicator_bytes; /* memory, of a check of BENCH_DUP and BENCH_OPEN; -1 */
    double predicted_us;                   /* by the library's cost model, of a check; -1 */
    double seconds[BENCH_BATCHES_MAX];     /* per call, of each batch on this rank */
    char ran[BENCH_ALGORITHM_MAX];         /* by which the last call ran; "": nobody knows */
    char sentence[BENCH_SENTENCE_MAX];
};

#endif
