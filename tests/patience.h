/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience.h - how tests wait: for a state, or for as long as a busy machine needs.
 *
 * No test takes a sleep for a result. A test that looks whether something does not happen first
 * awaits that whoever would do it has gone as far as it can; a test of a time-out asks
 * world_patience() for its length. Tests of every room are linked with this; it knows nothing of
 * Rondo.
 */
#ifndef RONDO_TESTS_PATIENCE_H
#define RONDO_TESTS_PATIENCE_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns the seconds to allow for what takes `seconds` on an idle machine, as other programs may
 * run on this one. The factor is the same for all callers of a process. */
double world_patience(double seconds);

/*
 * Returns true when that thread, of whatever process, waits: looks at it until the kernel has shown
 * it asleep in many of them. So a thread that has told its number just before a call is in the wait
 * of that call, whether it sleeps there once or again and again. False: it has ended.
 */
bool world_await_sleep(pid_t thread);

/* This takes a thread that is busy for all of 10 s to wait, too: the drivers of GPUs spin. */
bool world_await_sleep_or_spin(pid_t thread);

/* This does the same for a thread that tells its number there, where there is 0 until then. */
bool world_await_told(const _Atomic pid_t *thread);

/*
 * Returns when all threads of these `count` processes have been asleep in many looks in a row, but
 * for the one that calls: so nothing is on its way between them, and what was to happen without
 * anybody else has happened. A thread that waits for its turn on a core is not asleep.
 */
void world_await_quiet(const pid_t *processes, int count);

#endif
