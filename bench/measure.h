/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - one rank's part of a command: buffers, check, timing. */
#ifndef RONDO_BENCH_MEASURE_H
#define RONDO_BENCH_MEASURE_H

#include "bench/library.h"
#include "bench/protocol.h"

struct measure {
    const struct bench_library *library;
    void *state; /* of the library */
    int rank, size;
    unsigned char *areas[2]; /* input and output; room for several copies of the buffers */
    size_t area_bytes;
    bool shared; /* the areas' kind */
};

void measure_run(struct measure *measure, const struct bench_command *command,
                 struct bench_reply *ret_reply);
void measure_done(struct measure *measure);

#endif
