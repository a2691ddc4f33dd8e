/* SPDX-License-Identifier: BSD-3-Clause */
/* bodies.h - what ranks do in these tests. */
#ifndef RONDO_TESTS_COMPAT_BODIES_H
#define RONDO_TESTS_COMPAT_BODIES_H

#include "client.h"

#include "../patience.h"

#include <stdatomic.h>

/* matrix.c: every collective x type x operation, in place and not, several counts and roots */
bool matrix_run(struct client *client);
/* One call on the client's stream, checked: buffers that are left alone until it is done. */
struct matrix_call {
    int collective; /* 0 .. MATRIX_COLLECTIVES - 1 */
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t count;
    int root;
    bool in_place;
    char *input, *output; /* set by matrix_prepare() */
    char *memory;
};
enum { MATRIX_COLLECTIVES = 8 };
bool matrix_prepare(struct client *client, struct matrix_call *call);
bool matrix_enqueue(struct client *client, const struct matrix_call *call);
bool matrix_check(struct client *client, const struct matrix_call *call);
void matrix_done(struct matrix_call *call);

/* forked.c */
bool forked_child_is_refused(struct client *client);

/* groups.c */
bool groups_of_many_tensors(struct client *client);
bool groups_nest_and_exchange(struct client *client);
bool groups_with_an_error_do_nothing(struct client *client);
bool groups_left_open_are_aborted(struct client *client);
bool groups_call_beside_a_split(struct client *client);
bool groups_are_simulated(struct client *client);
bool groups_are_simulated_alike(struct client *client);
bool groups_alone(struct client *clients);
bool groups_split_alone(struct client *clients);
bool streams_share_a_communicator(struct client *client);
bool streams_are_captured(struct client *client);

/* derive.c */
bool derive_split(struct client *client);
bool derive_shrink(struct client *client);
bool derive_shrink_after_a_death(struct client *client);
/* The rank that is the second to die: when the others shrink, or before they do. */
struct deaths {
    int second;
    bool in_shrink;
    _Atomic pid_t processes[CLIENT_RANKS]; /* of those that have missed the first, at last */
};
bool derive_shrink_after_two_deaths(struct client *client);
bool derive_shrink_in_mid_flight(struct client *client);
/* The argument counts those that have joined, between processes. */
bool derive_shrink_after_a_failed_split(struct client *client);
bool derive_revoke(struct client *client);
bool derive_grow(struct client *client);

/* beside.c */
struct hang {
    bool blocks;        /* the split that hangs, else it is in the background */
    bool grouped;       /* the shrink */
    atomic_int arrived; /* ranks that have gone on without the last one */
};
bool beside_a_split_that_hangs(struct client *client);
/* The argument is an atomic_int that says how far rank 0 is, between processes. */
bool beside_refused_calls_do_nothing(struct client *client);
bool beside_another_split(struct client *client);

/* ends.c */
bool ends_join_in_the_background(struct client *client);
bool ends_abort_a_join(struct client *client);
bool ends_abort_a_join_that_blocks(struct client *client);
bool ends_abort_in_groups(struct client *client);
bool ends_ask_after_the_end(struct client *client);
/* The argument is int[2]: whether each split blocks. */
bool ends_split_twice_in_a_group(struct client *client);
bool ends_leave_no_thread(struct client *client);
bool ends_keep_no_stacks(struct client *client);
bool ends_abort_before_a_join(struct client *client);
bool ends_abort_in_mid_flight(struct client *client);
/* The argument says when rank 0 is through. */
bool ends_abort_before_a_split(struct client *client);
bool ends_finalize(struct client *client);

/* config.c */
bool config_refuses_wrong_values(struct client *client);
bool config_fills_all(struct client *client);
bool config_names_a_communicator(struct client *client);
bool config_marks_packets(struct client *client);
bool config_takes_one_network(struct client *client);
struct blocks_wanted {
    int least, most; /* 0: not set */
    size_t count;    /* floats of the call */
};
bool config_counts_blocks(struct client *client);

/* later.c */
bool later_calls_take_options(struct client *client);
bool later_questions_have_answers(struct client *client);
bool later_functions_say_no(struct client *client);

/* rest.c */
bool rest_scaled_sums(struct client *client);
bool rest_device_scalars(struct client *client);
bool rest_asks(struct client *client);
bool rest_configurations(struct client *client);
bool rest_wrong_configurations(struct client *client);
bool rest_memory(struct client *client);
bool rest_windows(struct client *client);
bool rest_mistakes(struct client *client);
bool rest_what_is_not_offered(struct client *client);

/* A checked all-reduce on `comm`, whoever the ranks are. */
bool sums_up(struct client *client, ncclComm_t comm);

#endif
