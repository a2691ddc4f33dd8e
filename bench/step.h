/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step.h - several lines that are timed together: calls and computing.
 *
 * A step in the background is begun line by line and waited for at its end, and so is one on
 * several communicators; else each call of a step returns when it is done, as in a program that
 * makes them one after another.
 */
#ifndef RONDO_BENCH_STEP_H
#define RONDO_BENCH_STEP_H

#include "bench/measure.h"

/* NULL, or why the library cannot do this command. */
const char *step_lacks(const struct measure *measure, const struct bench_command *command);
/* Bytes of an area that the buffers of all its calls take. */
size_t step_bytes(const struct measure *measure, const struct bench_command *command);
/* Go through the lines once, on the buffers of a turn. 0, or -1: see the library's error. */
int step_run(struct measure *measure, const struct bench_command *command, size_t turn);
/* Makes the calls of the lines, or of a command without lines its call, with known inputs, and then
 * those of a graph; adds what is wrong to the reply, or says why it failed. */
void step_check(struct measure *measure, const struct bench_command *command,
                struct bench_reply *reply);

#endif
