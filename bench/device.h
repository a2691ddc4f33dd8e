/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - the GPU of a benchmarked rank: memory, a stream, graphs. By the CUDA driver, which is
 * loaded at run time, so that every library is measured with the same buffers on the same streams.
 *
 * Ranks of a host take its devices in turns: local rank modulo the number of devices. The device's
 * primary context is current on the thread that opened it; only that thread may use it.
 */
#ifndef RONDO_BENCH_DEVICE_H
#define RONDO_BENCH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

struct device;

/* NULL, and a sentence that says what is missing. */
struct device *device_open(int local_rank, char *sentence, size_t room);
void device_close(struct device *device); /* accepts NULL */

int device_number(const struct device *device);
int device_count(const struct device *device); /* of this machine, as the process sees it */
size_t device_bytes(const struct device *device);
/* Returns what the last function that failed said. */
const char *device_error(const struct device *device);

void *device_alloc(struct device *device, size_t bytes); /* NULL: see device_error() */
void device_free(struct device *device, void *memory);

/* The other functions: 0, or -1 and a sentence for device_error(). */
int device_clear(struct device *device, void *memory, size_t bytes);
int device_copy(struct device *device, void *to, const void *from, size_t bytes); /* any kind */

/* ---- The stream ------------------------------------------------------------------------------ */

void *device_stream(const struct device *device); /* a CUstream */
int device_wait(struct device *device);           /* for all that was queued on it */
int device_queue_copy(struct device *device, void *to, const void *from, size_t bytes);
/* An empty kernel; where the driver takes none in PTX, four bytes are set instead. */
int device_queue_nothing(struct device *device);

/* Calls queued between the two become a graph, and are not done; an older graph is forgotten. */
int device_record_begin(struct device *device);
int device_record_end(struct device *device);
int device_replay(struct device *device); /* queue the graph */

#endif
