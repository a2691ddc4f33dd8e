/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bodies.h - what ranks do in the tests of this folder, apart from the matrix. Each is a
 * world_body: it returns a result and leaves a sentence; tests assert on them, stress programs run
 * them under ThreadSanitizer.
 */
#ifndef RONDO_TESTS_API_BODIES_H
#define RONDO_TESTS_API_BODIES_H

#include "../world.h"

/* groups.c */
rondo_result groups_fuse_many_calls(rondo_comm *comm, void *argument, char *sentence);
rondo_result groups_exchange_with_all(rondo_comm *comm, void *argument, char *sentence);
rondo_result groups_nest(rondo_comm *comm, void *argument, char *sentence);
rondo_result groups_send_recv_chain(rondo_comm *comm, void *argument, char *sentence);
rondo_result groups_repeat(rondo_comm *comm, void *argument, char *sentence);
rondo_result groups_repeat_two_lengths(rondo_comm *comm, void *argument, char *sentence);
rondo_result groups_repeat_after_opening(char *sentence);
/* All ranks in the calling thread: their calls in one group; with `by_id` their opening too. */
rondo_result groups_run_in_one_thread(int size, bool by_id, char *sentence);

/* streams.c */
rondo_result streams_keep_order(rondo_comm *comm, void *argument, char *sentence);
rondo_result streams_call_functions_in_order(rondo_comm *comm, void *argument, char *sentence);
rondo_result streams_wait_for_events(rondo_comm *comm, void *argument, char *sentence);
rondo_result streams_overlap_with_others(rondo_comm *comm, void *argument, char *sentence);
rondo_result streams_take_calls_of_several_threads(rondo_comm *comm, void *argument,
                                                   char *sentence);

/* splits.c */
rondo_result splits_odd_and_even(rondo_comm *comm, void *argument, char *sentence);
rondo_result splits_reverse_and_leave_out(rondo_comm *comm, void *argument, char *sentence);
rondo_result splits_nest(rondo_comm *comm, void *argument, char *sentence);
rondo_result splits_dup_has_its_own_order(rondo_comm *comm, void *argument, char *sentence);
rondo_result splits_by_several_threads(rondo_comm *comm, void *argument, char *sentence);

/* operations.c */
rondo_result operations_affine_maps_in_rank_order(rondo_comm *comm, void *argument, char *sentence);
rondo_result operations_commutative(rondo_comm *comm, void *argument, char *sentence);
rondo_result operations_differ_in_number(rondo_comm *comm, void *argument, char *sentence);
/* Only that of the last rank does not commute. */
rondo_result operations_differ_in_kind(rondo_comm *comm, void *argument, char *sentence);
rondo_result operations_premul_sum(rondo_comm *comm, void *argument, char *sentence);
rondo_result operations_min_max_of_special_values(rondo_comm *comm, void *argument, char *sentence);
rondo_result operations_narrow_sums_saturate(rondo_comm *comm, void *argument, char *sentence);

/* estimates.c */
rondo_result estimates_are_equal_and_grow(rondo_comm *comm, void *argument, char *sentence);
rondo_result estimates_run_nothing(rondo_comm *comm, void *argument, char *sentence);
rondo_result estimates_need_no_turn(rondo_comm *comm, void *flag, char *sentence);
rondo_result estimates_of_groups_add_up(rondo_comm *comm, void *argument, char *sentence);
rondo_result estimates_refuse_mistakes(rondo_comm *comm, void *argument, char *sentence);
/*
 * Estimates an all_reduce of a million floats, in microseconds, to *(double *)argument on rank 0.
 */
rondo_result estimates_tell(rondo_comm *comm, void *argument, char *sentence);

/* kinds.c */
rondo_result kinds_change(rondo_comm *comm, void *argument, char *sentence);
rondo_result kinds_of_messages_take_turns(rondo_comm *comm, void *argument, char *sentence);

/* in_use.c: rank 0 takes memory away under a call that waits for the others */
rondo_result in_use_deregister(rondo_comm *comm, void *argument, char *sentence);
rondo_result in_use_close_another(rondo_comm *comm, void *argument, char *sentence);
rondo_result in_use_free(rondo_comm *comm, void *argument, char *sentence);

/* A plain all_reduce of `count` int32, checked. */
rondo_result bodies_all_reduce(rondo_comm *comm, size_t count, char *sentence);

#endif
