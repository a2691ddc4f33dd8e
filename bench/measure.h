/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - one rank's part of a command: buffers, check, timing. */
#ifndef RONDO_BENCH_MEASURE_H
#define RONDO_BENCH_MEASURE_H

#include "bench/library.h"
#include "bench/protocol.h"

struct measure {
    const struct bench_library *library;
    void *state;           /* of the library */
    struct device *device; /* NULL: host memory only */
    int rank, size;
    unsigned char *areas[2]; /* input and output; room for several copies of the buffers */
    size_t area_bytes;
    size_t turn;              /* number of the buffers in the areas that the next timed call has */
    enum bench_memory memory; /* the areas' kind */
    /* Where the host prepares and looks at the first buffers of the areas: they themselves, or
     * copies, if they are on a device. */
    unsigned char *views[2];
    size_t view_bytes;
    double speed;  /* of computing, see work.h; 0: not measured yet */
    double before; /* memory of the process before the library was open, bytes; -1: unknown */
    /* What the library was found to take, once: later its further communicators are there. */
    bool weighed;
    double rank_bytes, communicator_bytes;
};

/* A spot is where the buffers of one call are. */
struct spot {
    unsigned char *input, *output;
    size_t input_bytes, output_bytes;
};

void measure_run(struct measure *measure, const struct bench_command *command,
                 struct bench_reply *ret_reply);
void measure_done(struct measure *measure);

/* ---- For step.c ------------------------------------------------------------------------------ */

/* Bytes of an area that a call's buffer takes with its guards; the spot at so many bytes of it. */
size_t measure_stride(const struct measure *measure, const struct bench_call *call);
struct spot measure_spot(const struct measure *measure, unsigned char *const *areas,
                         const struct bench_call *call, size_t offset);
/* Write the input, and what shows where else something is written; `to` is in the views. */
void measure_prepare(const struct measure *measure, const struct bench_call *call,
                     const struct spot *to);
uint64_t measure_count_wrong(const struct measure *measure, const struct bench_call *call,
                             const struct spot *in);
/* Copies the first buffers of both areas from the views (`in`), or to them. 0, or -1. */
int measure_carry(const struct measure *measure, bool in);
/* A barrier of the library. */
int measure_meet(const struct measure *measure);
/* Some calls, or steps, become a graph, and are done once. 0, or -1. */
int measure_record(struct measure *measure, const struct bench_command *command, int calls,
                   size_t *turn);
void measure_fail(struct measure *measure, struct bench_reply *reply, const char *doing);

#endif
