/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.h - a collective library as the benchmark sees it. A worker program links worker.c,
 * measure.c and one file that defines `bench_the_library`.
 */
#ifndef RONDO_BENCH_LIBRARY_H
#define RONDO_BENCH_LIBRARY_H

#include "bench/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device; /* bench/device.h */

/* The rank that this worker (or this thread of it) is to be. */
struct bench_place {
    int rank, size;
    const char *meeting;   /* Gloo, NCCL: a directory for the rendezvous; else NULL */
    const char *interface; /* Gloo: network interface; NULL: loopback */
    bool deterministic;
    double timeout;             /* seconds of silence until an error; 0: never, negative: not set */
    struct rondo_comm **joined; /* Rondo with --threads: all communicators; else NULL */
    bool threads;               /* all ranks are threads of this process */
    struct device *device;      /* of this rank, with a stream for queued calls; NULL: none */
    const char *file;           /* NCCL: the library; NULL: what the system has */
};

enum { BENCH_NO_SUCH_CALL = -2 };

struct bench_library {
    /*
     * Join. The place's rank and size are updated if the library knows better. NULL: failed, see
     * error(NULL).
     */
    void *(*open)(struct bench_place *place);
    void (*close)(void *state); /* accepts NULL */
    /* NULL, or why this library has no such call. Without this function it has all. */
    const char *(*lacks)(void *state, const struct bench_call *call);
    /*
     * Page aligned; zeroed, unless it is on a device. Without these two functions buffers are
     * bench_plain_alloc()'s, or of the place's device.
     */
    void *(*alloc)(void *state, size_t bytes, enum bench_memory memory);
    void (*free)(void *state, void *data, enum bench_memory memory);
    /* In place: `input` and `output` overlap as rondo.h says. 0; BENCH_NO_SUCH_CALL: the library
     * can't do it like this, with nothing done and error() saying why; or another error. */
    int (*run)(void *state, const struct bench_call *call, const void *input, void *output);
    const char *(*error)(void *state);
    /* The name of the algorithm of the last collective of run(); NULL: the library does not say. */
    const char *(*ran)(void *state);
    void (*version)(char *text, size_t room);
    /*
     * Calls that go on together. begin() opens communicators until there are so many, and all ranks
     * call it alike; start() begins a collective on one of them, of which number 0 is run()'s;
     * finish() returns when all are done. With `background` they go on while the caller computes,
     * as well as the library can. NULL, all three: there is no such call.
     */
    int (*begin)(void *state, int communicators, bool background);
    int (*start)(void *state, const struct bench_call *call, int communicator, const void *input,
                 void *output);
    int (*finish)(void *state);
    /* Microseconds that the library's cost model predicts for a call that was the last one made;
     * negative: it has no answer. NULL: it has no model. */
    double (*predict)(void *state, const struct bench_call *call);
};

extern const struct bench_library bench_the_library;

/* Page aligned and zeroed; free() it. NULL: there is no memory. */
void *bench_plain_alloc(size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
