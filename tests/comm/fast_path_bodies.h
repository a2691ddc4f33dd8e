/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_path_bodies.h - calls that repeat the one before, on ranks that are threads; stress_comm
 * runs the same under ThreadSanitizer. All return NULL, or what was wrong. */
#ifndef RONDO_TESTS_COMM_FAST_PATH_BODIES_H
#define RONDO_TESTS_COMM_FAST_PATH_BODIES_H

/*
 * One call is made over and over, of several lengths and kinds of memory, and over TCP: results
 * follow the inputs. Rank 0 changes its output from call to call, so that it never repeats what its
 * peers do.
 */
const char *repetitions_do_what_is_asked(int times);
/* More kinds of calls than are remembered come between two that are the same. */
const char *repetitions_outlive_their_choices(void);
/* Two threads of each rank make the same call at the same time. */
const char *threads_repeat_each_other(int times);
/* After some repetitions one rank calls something else: both say so, and do not hang. */
const char *a_repetition_meets_another_call(void);
/* One rank aborts while the other's repetition waits for it. */
const char *a_repetition_ends_with_its_peer(void);
/* Another thread of the rank aborts the communicator, and closes it, while a repetition waits. */
const char *a_repetition_ends_in_a_communicator_that_is_closed(void);

#endif
