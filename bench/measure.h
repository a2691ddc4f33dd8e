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
    enum bench_memory memory; /* the areas' kind */
    /* Where the host prepares and looks at the first buffers of the areas: they themselves, or
     * copies, if they are on a device. */
    unsigned char *views[2];
    size_t view_bytes;
};

void measure_run(struct measure *measure, const struct bench_command *command,
                 struct bench_reply *ret_reply);
void measure_done(struct measure *measure);

#endif
