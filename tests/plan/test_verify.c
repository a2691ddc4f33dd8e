/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verify.c - the verifier on all plans that ship, and on plans by hand with one fault each. */
#include "tests/plan/verify_forms.h"

#include <criterion/criterion.h>
#include <string.h>

static void assert_refused(struct forms *forms, const char *who, const char *why)
{
    struct verify_report report;
    bool proved = forms_prove(forms, false, &report);

    forms_close(forms);
    cr_assert(!proved, "should be refused for: %s", why);
    cr_assert(strstr(report.failure, who), "'%s' should name %s", report.failure, who);
    cr_assert(strstr(report.failure, why), "'%s' should say: %s", report.failure, why);
}

static void assert_proved(struct forms *forms)
{
    struct verify_report report;
    bool proved = forms_prove(forms, false, &report);

    forms_close(forms);
    cr_assert(proved, "%s", report.failure);
}

/* Every claim of every algorithm, over few ranks; `rondo verify all` goes further. */
Test(verify, every_plan_is_right_and_keeps_its_promises)
{
    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++)
            for (int size = 1; size <= 17 && algorithms[i]->forms[c].write; size++) {
                unsigned promises = algorithms[i]->forms[c].promises;
                struct verify_report report;
                struct forms forms;

                if (c == RONDO_RECV || (c == RONDO_SEND && size == 1))
                    continue;
                cr_assert(
                    forms_make(algorithms[i]->name, (rondo_collective)c, size, size / 2, &forms));
                for (int in_place = 0; in_place <= !!(promises & PROMISE_IN_PLACE); in_place++) {
                    cr_assert(forms_prove(&forms, in_place, &report), "%s %s over %d: %s",
                              algorithms[i]->name, rondo_collective_name((rondo_collective)c), size,
                              report.failure);
                    cr_assert(report.balanced || !(promises & PROMISE_BALANCED));
                    cr_assert(report.rank_order || !(promises & PROMISE_RANK_ORDER));
                    cr_assert(report.one_round || !(promises & PROMISE_ONE_ROUND));
                    cr_assert(!report.peer_memory || (promises & PROMISE_PEER_MEMORY));
                }
                forms_close(&forms);
            }
}

Test(verify, a_ring_neither_keeps_rank_order_nor_balance)
{
    struct verify_report report;
    struct forms forms;

    cr_assert(forms_make("ring", RONDO_ALL_REDUCE, 4, 0, &forms));
    cr_assert(forms_prove(&forms, false, &report));
    cr_assert(!report.balanced && !report.rank_order && !report.one_round && !report.peer_memory);
    cr_assert_gt(report.steps, 0);
    cr_assert_gt(report.messages, 0);
    forms_close(&forms);
}

/* Two ranks send each other `messages` messages before they take any: right if slots suffice. */
static void exchange(struct forms *forms, int messages)
{
    forms_open(RONDO_BARRIER, 2, forms);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < messages; i++)
            plan_notify(forms->plans[r], 1 - r, 0, 0);
        for (int i = 0; i < messages; i++)
            plan_await(forms->plans[r], 1 - r, 0, 0);
    }
}

Test(verify, sending_all_first_is_fine_while_slots_last)
{
    struct forms forms;

    exchange(&forms, 2);
    assert_proved(&forms);
}

Test(verify, sending_more_than_there_are_slots_is_a_deadlock)
{
    struct forms forms;

    exchange(&forms, 3);
    assert_refused(&forms, "rank 1", "that is a circle");
}

Test(verify, more_slots_make_the_same_plan_right)
{
    struct verify_options options = {.slots = 3};
    struct verify_report report;
    struct forms forms;

    exchange(&forms, 3);
    cr_assert_eq(verify_plans(forms.plans, 2, &options, &report), RONDO_OK);
    forms_close(&forms);
}

Test(verify, waiting_for_each_other_first_is_a_deadlock)
{
    struct forms forms;

    forms_open(RONDO_BARRIER, 3, &forms);
    for (int r = 0; r < 3; r++) {
        plan_await(forms.plans[r], (r + 2) % 3, 0, 0);
        plan_notify(forms.plans[r], (r + 1) % 3, 0, 0);
    }
    assert_refused(&forms, "rank 2, step 0 (wait for a message from rank 1", "that is a circle");
}

Test(verify, waiting_for_somebody_who_never_sends_is_a_deadlock)
{
    struct forms forms;

    exchange(&forms, 1);
    plan_await(forms.plans[1], 0, 3, 0);
    assert_refused(&forms, "rank 1, step 4", "nobody is at the other end");
}

Test(verify, a_message_that_nobody_takes_is_refused)
{
    struct forms forms;

    forms_open(RONDO_BROADCAST, 1, &forms);
    plan_combine(forms.plans[0], 1, 0, PLAN_LIST(plan_input(forms.plans[0], 0, 0)),
                 PLAN_LIST(plan_output(forms.plans[0], 0, 0)));
    plan_notify(forms.plans[0], 0, 0, 0);
    assert_refused(&forms, "rank 0", "nobody is at the other end");
}

Test(verify, leaving_a_barrier_too_early_is_refused)
{
    struct forms forms;

    forms_open(RONDO_BARRIER, 3, &forms);
    for (int r = 0; r < 3; r++) {
        plan_notify(forms.plans[r], (r + 1) % 3, 0, 0);
        plan_await(forms.plans[r], (r + 2) % 3, 0, 0);
    }
    assert_refused(&forms, "leaves the barrier", "without knowing that rank");
}

Test(verify, reading_a_slot_after_giving_it_back_is_refused)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_BROADCAST, 2, &forms);
    plan = forms.plans[0];
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_slot(1, 0), plan_output(plan, 0, 0)));
    plan = forms.plans[1];
    plan_await(plan, 0, 0, 0);
    plan_move(plan, 1, 0, PLAN_LIST(plan_slot(0, 0)), PLAN_LIST(plan_output(plan, 0, 0)));
    assert_refused(&forms, "rank 1, step 1", "it took 0 of the message's 1 atoms");
}

/* Parts 0 and 1 of 2 differ in length when the count is odd. */
Test(verify, pieces_of_unequal_length_are_refused)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_BROADCAST, 2, &forms);
    for (int r = 0; r < 2; r++)
        plan_shape(forms.plans[r], 2, 1, 0);
    plan = forms.plans[0];
    plan_combine(plan, 2, 0, PLAN_LIST(plan_input(plan, 0, 0)), PLAN_LIST(plan_output(plan, 0, 0)));
    for (int i = 0; i < 2; i++)
        plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, i)), PLAN_LIST(plan_slot(1, 0)));
    plan = forms.plans[1];
    for (int i = 0; i < 2; i++)
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(0, 0)),
                     PLAN_LIST(plan_output(plan, 0, 1 - i)));
    assert_refused(&forms, "rank 1, step 1", "need not be of one length");
}

Test(verify, a_message_of_two_pieces_taken_as_one_is_refused)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_BROADCAST, 2, &forms);
    for (int r = 0; r < 2; r++)
        plan_shape(forms.plans[r], 2, 2, 0);
    plan = forms.plans[0];
    plan_combine(plan, 2, 0, PLAN_LIST(plan_input(plan, 0, 0)), PLAN_LIST(plan_output(plan, 0, 0)));
    plan_acquire(plan, 1, 0);
    for (int i = 0; i < 2; i++)
        plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, i)), PLAN_LIST(plan_slot(1, 0)));
    plan_signal(plan, 1, 0, 0);
    plan = forms.plans[1];
    plan_combine(plan, 2, 0, PLAN_LIST(plan_slot(0, 0)), PLAN_LIST(plan_output(plan, 0, 0)));
    assert_refused(&forms, "rank 1, step 1", "not one piece");
}

Test(verify, ranks_that_disagree_about_the_shape_are_refused)
{
    struct forms forms;

    cr_assert(forms_make("ring", RONDO_ALL_GATHER, 3, 0, &forms));
    forms.plans[2]->parts++;
    assert_refused(&forms, "rank 2", "another shape");
}

/*
 * Zero copy by hand: rank 1 reads rank 0's input. Whoever leaves out the farewell lets the user
 * write too early.
 */
static void fetch(struct forms *forms, bool farewell)
{
    struct plan *from, *to;

    forms_open(RONDO_BROADCAST, 2, forms);
    from = forms->plans[0];
    to = forms->plans[1];
    plan_shape(from, 1, 0, 0);
    plan_shape(to, 1, 0, 0);
    plan_notify(from, 1, 0, PLAN_ADDRESSES);
    plan_notify(to, 0, 0, PLAN_ADDRESSES);
    plan_await(from, 1, 0, PLAN_ADDRESSES);
    plan_await(to, 0, 0, PLAN_ADDRESSES);
    plan_combine(from, 1, 0, PLAN_LIST(plan_input(from, 0, 0)), PLAN_LIST(plan_output(from, 0, 0)));
    plan_combine(to, 1, 0, PLAN_LIST(plan_peer_input(0, 0, 0)), PLAN_LIST(plan_output(to, 0, 0)));
    if (farewell) {
        plan_notify(to, 0, 0, 0);
        plan_await(from, 1, 0, 0);
    }
}

Test(verify, a_peer_may_read_between_hello_and_farewell)
{
    struct forms forms;

    fetch(&forms, true);
    assert_proved(&forms);
}

Test(verify, touching_a_peers_memory_without_farewell_is_a_race_with_its_user)
{
    struct forms forms;

    fetch(&forms, false);
    assert_refused(&forms, "rank 1", "nothing orders");
}

static void say_nothing(struct plan *plan, bool sent)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (sent == (plan->steps[i].verb == PLAN_SIGNAL && plan->steps[i].event == PLAN_DATA))
            plan->steps[i].flags &= (uint8_t)~PLAN_ADDRESSES;
    *(sent ? &plan->address_signals : &plan->address_messages) = 0;
}

Test(verify, touching_a_peers_memory_before_it_said_where_is_refused)
{
    struct forms forms;

    fetch(&forms, true);
    for (int i = 0; i < 4; i++)
        say_nothing(forms.plans[i / 2], i % 2);
    assert_refused(&forms, "rank 1", "has not said where its buffers are");
}

Test(verify, who_says_where_its_buffers_are_hears_of_others_too)
{
    struct forms forms;

    fetch(&forms, true);
    say_nothing(forms.plans[0], false);
    say_nothing(forms.plans[1], true);
    assert_refused(&forms, "rank 0", "would not know");
}

/* Two programs of a rank share scratch; only a message orders them. */
Test(verify, programs_that_share_scratch_without_a_message_are_a_race)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_BROADCAST, 1, &forms);
    plan = forms.plans[0];
    plan_shape(plan, 1, 1, 1);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, 0, 0), plan_scratch(plan, 0, 0)));
    plan_next_program(plan);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_scratch(plan, 0, 0)));
    assert_refused(&forms, "rank 0, program 1, step 1", "race");
}

/*
 * Ordered by a message, but the first program may be a segment ahead and overwrite what the second
 * still reads.
 */
Test(verify, scratch_that_the_next_segment_overwrites_is_a_race)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_BROADCAST, 1, &forms);
    plan = forms.plans[0];
    plan_shape(plan, 1, 1, 1);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_scratch(plan, 0, 0)));
    plan_notify(plan, 0, 0, 0);
    plan_next_program(plan);
    plan_await(plan, 0, 0, 0);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_scratch(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, 0, 0)));
    assert_refused(&forms, "rank 0, program", "race");
}

/* With 2 slots the third message waits until the first was read, with more it does not. */
Test(verify, order_that_only_a_lack_of_slots_gives_is_a_race)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_BROADCAST, 1, &forms);
    plan = forms.plans[0];
    plan_shape(plan, 1, 1, 1);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_scratch(plan, 0, 0)));
    for (int i = 0; i < 3; i++)
        plan_notify(plan, 0, 0, 0);
    plan_next_program(plan);
    plan_wait(plan, 0, 0, 0);
    plan_move(plan, 1, 0, PLAN_LIST(plan_scratch(plan, 0, 0)), PLAN_LIST(plan_output(plan, 0, 0)));
    plan_release(plan, 0, 0);
    for (int i = 0; i < 2; i++)
        plan_await(plan, 0, 0, 0);
    assert_refused(&forms, "rank 0, program", "race");
}

Test(verify, two_programs_at_one_end_of_a_channel_are_refused)
{
    struct forms forms;

    forms_open(RONDO_BARRIER, 2, &forms);
    plan_notify(forms.plans[0], 1, 0, 0);
    plan_next_program(forms.plans[0]);
    plan_notify(forms.plans[0], 1, 0, 0);
    assert_refused(&forms, "rank 0, program 1, step 2", "program 0 uses this end");
}

Test(verify, send_to_oneself_is_a_pair_of_plans_of_one_rank)
{
    const struct algorithm *direct = algorithm_find("direct");
    struct forms forms = {.size = 2};

    cr_assert_eq(algorithm_plan(direct, RONDO_SEND, 1, 0, 0, &forms.plans[0]), RONDO_OK);
    cr_assert_eq(algorithm_plan(direct, RONDO_RECV, 1, 0, 0, &forms.plans[1]), RONDO_OK);
    assert_proved(&forms);
}

/* rank 0 adds (0 + 1) + 2, rank 1 adds 0 + (1 + 2): the same sum, not the same bits. */
Test(verify, ranks_that_associate_differently_are_refused)
{
    struct forms forms;
    struct plan *plan;

    forms_open(RONDO_ALL_REDUCE, 3, &forms);
    for (int r = 0; r < 3; r++) {
        plan = forms.plans[r];
        plan_shape(plan, 1, 1, 1);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                     PLAN_LIST(plan_slot((r + 1) % 3, 0), plan_slot((r + 2) % 3, 0)));
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot((r + 1) % 3, 0), plan_slot((r + 2) % 3, 0)),
                     PLAN_LIST(plan_scratch(plan, 0, 0)));
        plan_move(plan, 1, PLAN_FINISH, PLAN_LIST(plan_scratch(plan, 0, 0), plan_input(plan, 0, 0)),
                  PLAN_LIST(plan_output(plan, 0, 0)));
    }
    assert_refused(&forms, "rank ", "other bits");
}

/* ---- What a network does by itself (plan/zcopy.h) -------------------------------------------- */

/*
 * Rank 0 takes a message of rank 1, then one of rank 2 to a place which its other program reads
 * before it tells rank `told`, which waits for that before it sends.
 */
static void read_where_a_message_goes(struct forms *forms, int told)
{
    struct plan *plan;

    forms_open(RONDO_ALL_GATHER, 3, forms);
    for (int r = 0; r < 3; r++) {
        plan = forms->plans[r];
        plan_shape(plan, 1, 1, 1);
        plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                  PLAN_LIST(plan_output(plan, r, 0), plan_output(plan, 2, 0)));
        if (r == 2)
            plan->steps[0].destinations = 1;
        if (r == 0)
            plan_notify(plan, 0, 3, 0);
        for (int peer = 0; peer < 3; peer++) {
            if (peer == r)
                continue;
            if (peer == 0 && r == told)
                plan_await(plan, 0, 3, 0);
            plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                         PLAN_LIST(plan_slot(peer, 0)));
        }
        for (int peer = 0; peer < 3; peer++)
            if (peer != r)
                plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(peer, 0)),
                             PLAN_LIST(plan_output(plan, peer, 0)));
    }
    plan = forms->plans[0];
    plan_next_program(plan);
    plan_await(plan, 0, 3, 0);
    plan_move(plan, 1, 0, PLAN_LIST(plan_output(plan, 2, 0)), PLAN_LIST(plan_scratch(plan, 0, 0)));
    plan_notify(plan, told, 3, 0);
}

Test(verify, reading_where_a_message_goes_is_fine_before_that_is_sent)
{
    struct forms forms;

    read_where_a_message_goes(&forms, 2);
    assert_proved(&forms);
}

Test(verify, reading_where_a_network_may_put_a_message_is_a_race)
{
    struct forms forms;

    read_where_a_message_goes(&forms, 1);
    assert_refused(&forms, "rank 0", "a network may put this message into rank 0's out");
}

/* Only the rank itself writes what is sent zero-copy, and reclaims it: peers have no way to it. */
Test(verify, a_plan_that_touches_memory_of_peers_sends_no_data_that_could_be_zcopy)
{
    struct forms forms;

    fetch(&forms, true);
    for (int r = 0; r < 2; r++)
        plan_shape(forms.plans[r], 1, 1, 0);
    assert_refused(&forms, "rank 0", "mixes messages with addresses and messages with data");
}
