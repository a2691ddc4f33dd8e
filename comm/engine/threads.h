/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.h - a step that many ranks of this process have to take at the same time. */
#ifndef RONDO_COMM_ENGINE_THREADS_H
#define RONDO_COMM_ENGINE_THREADS_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>

/* Run `step` for many ranks of this process at once, each
 * in a thread of its own; the first error of any. */
rondo_result threads_run(rondo_result (*step)(void *), void *const *arguments, int count);

/* The number of the calling thread, or of the one whose threads_run() it serves. */
uint64_t threads_caller(void);
/* True if the calling thread runs a step of threads_run(). */
bool threads_is_step(void);

#endif
