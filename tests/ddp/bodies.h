/* SPDX-License-Identifier: BSD-3-Clause */
/* bodies.h - what ranks do in the tests of the core of the data-parallel layer; see world.h. */
#ifndef RONDO_TESTS_DDP_BODIES_H
#define RONDO_TESTS_DDP_BODIES_H

#include "toy.h"

/* start.c */
rondo_result start_gives_all_the_values_of_rank_0(rondo_comm *comm, void *unused, char *sentence);
rondo_result start_refuses_other_models(rondo_comm *comm, void *unused, char *sentence);
rondo_result start_refuses_bad_arguments(rondo_comm *comm, void *unused, char *sentence);

/* steps.c */
rondo_result steps_sum_and_rebuild(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_average(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_accumulate(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_divide_all_types(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_describe_in_short(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_broadcast_buffers(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_are_counted_and_described(rondo_comm *comm, void *unused, char *sentence);
rondo_result steps_name_the_latest_rank(rondo_comm *comm, void *unused, char *sentence);

/* unused.c */
rondo_result unused_here_counts_as_zero(rondo_comm *comm, void *unused, char *sentence);
rondo_result unused_everywhere_is_kept(rondo_comm *comm, void *unused, char *sentence);
rondo_result unused_in_the_last_pass_only_counts(rondo_comm *comm, void *unused, char *sentence);

/* mistakes.c */
rondo_result forked_child_is_refused(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_missing_gradient(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_twice(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_out_of_order(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_nan(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_passes(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_leaving(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_moving(rondo_comm *comm, void *unused, char *sentence);
rondo_result mistakes_dead_peer(rondo_comm *comm, void *unused, char *sentence);

/* joins.c */
rondo_result joins_by_size(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_by_remaining(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_step_everywhere(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_whose_step_fails(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_are_not_chosen(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_within_a_step(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_forget_a_step(rondo_comm *comm, void *unused, char *sentence);
rondo_result joins_in_mixed_passes(rondo_comm *comm, void *unused, char *sentence);

/* hooks.c */
rondo_result hooks_replace_the_all_reduce(rondo_comm *comm, void *unused, char *sentence);
rondo_result hooks_fail_on_all(rondo_comm *comm, void *unused, char *sentence);
rondo_result hooks_compress(rondo_comm *comm, void *unused, char *sentence);
rondo_result hooks_round_to_nearest(rondo_comm *comm, void *unused, char *sentence);

/* random.c */
rondo_result random_models_and_orders(rondo_comm *comm, void *unused, char *sentence);

/* trees.c; the argument is a struct trees */
rondo_result trees_of_micro_batches(rondo_comm *comm, void *trees, char *sentence);

/* linear.c */
rondo_result linear_learns_like_one_process(rondo_comm *comm, void *unused, char *sentence);

/* norms.c */
rondo_result norms_like_one_process(rondo_comm *comm, void *unused, char *sentence);

#endif
