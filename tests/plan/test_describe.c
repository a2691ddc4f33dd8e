/* SPDX-License-Identifier: BSD-3-Clause */
/* test_describe.c - steps in words, and how many blocks the user's buffers have. */
#include "plan/plan.h"

#include <criterion/criterion.h>
#include <string.h>

static char text[400];

static const char *say(const struct plan *plan, uint32_t step)
{
    plan_describe_step(plan, &plan->steps[step], text, sizeof(text));
    return text;
}

static struct plan *open_plan(unsigned parts)
{
    struct plan *plan = NULL;

    cr_assert(plan_open(RONDO_ALL_REDUCE, "trial", 20, 2, 0, &plan) == RONDO_OK);
    plan_shape(plan, parts, 1, 1);
    return plan;
}

Test(describe, every_kind_of_step_has_its_sentence)
{
    struct plan *plan = open_plan(4);

    plan_combine(plan, 2, PLAN_FINISH,
                 PLAN_LIST(plan_input(plan, 0, 1), plan_slot(5, 1), plan_peer_input(3, 7, 1)),
                 PLAN_LIST(plan_scratch(plan, 6, 0), plan_slot(4, 2)));
    plan_notify(plan, 9, 0, PLAN_ADDRESSES);
    plan_await(plan, 8, 0, PLAN_ADDRESSES);
    plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 3)), PLAN_LIST(plan_peer_output(1, 0, 3)));
    cr_expect_str_eq(say(plan, 0), "wait for a message from rank 5 on lane 1");
    cr_expect_str_eq(say(plan, 1), "wait for a free slot to rank 4 on lane 2");
    cr_expect_str_eq(say(plan, 2),
                     "reduce input[0: 1..2 of 4] + slot(5) + rank 3's input[7: 1..2 of "
                     "4] -> scratch[6: 0..1 of 4], slot(4) (complete)");
    cr_expect_str_eq(say(plan, 3), "signal rank 4 on lane 2: a message");
    cr_expect_str_eq(say(plan, 4), "give the slot back to rank 5 on lane 1");
    cr_expect_str_eq(say(plan, 6),
                     "signal rank 9 on lane 0: a message that says where its buffers are");
    cr_expect_str_eq(say(plan, 7),
                     "wait for a message from rank 8 on lane 0 that says where its buffers are");
    cr_expect_str_eq(say(plan, 9), "copy input[0: 3 of 4] -> rank 1's output[0: 3 of 4]");
    plan_close(plan);
}

Test(describe, a_vector_of_one_part_needs_no_fractions_and_long_lists_are_cut)
{
    struct plan_operand sources[12];
    struct plan *plan = open_plan(1);

    for (int i = 0; i < 12; i++)
        sources[i] = plan_slot(i, 0);
    plan_move(plan, 1, 0, (struct plan_list){12, sources}, PLAN_LIST(plan_output(plan, 0, 0)));
    plan_move(plan, 1, 0, (struct plan_list){10, sources}, PLAN_LIST(plan_output(plan, 0, 0)));
    cr_expect_str_eq(say(plan, 0),
                     "reduce slot(0) + slot(1) + slot(2) + slot(3) + slot(4) + slot(5) "
                     "+ slot(6) + slot(7) + ... (12 in all) -> output[0]");
    cr_expect(strstr(say(plan, 1), "slot(8) + slot(9) -> output[0]"), "%s", text);
    plan_close(plan);
}

Test(describe, no_room_is_ever_exceeded)
{
    struct plan *plan = open_plan(3);
    char whole[200];
    size_t length;

    plan_move(plan, 2, PLAN_FINISH, PLAN_LIST(plan_input(plan, 0, 1), plan_slot(5, 1)),
              PLAN_LIST(plan_output(plan, 0, 1)));
    plan_describe_step(plan, plan->steps, whole, sizeof(whole));
    length = strlen(whole);
    for (size_t room = 0; room < length + 5; room++) {
        memset(text, '#', sizeof(text));
        plan_describe_step(plan, plan->steps, text, room);
        cr_expect(text[room] == '#', "room for %zu", room);
        if (room)
            cr_expect(strlen(text) == (room <= length ? room - 1 : length) &&
                      strncmp(text, whole, strlen(text)) == 0);
    }
    plan_close(plan);
}

Test(describe, buffers_have_the_blocks_that_the_header_promises)
{
    static const struct {
        rondo_collective collective;
        int input, output, input_at_root, output_at_root;
    } wanted[] = {
        {RONDO_ALL_REDUCE, 1, 1, 1, 1},     {RONDO_REDUCE, 1, 0, 1, 1},
        {RONDO_BROADCAST, 0, 1, 1, 1},      {RONDO_ALL_GATHER, 1, 5, 1, 5},
        {RONDO_REDUCE_SCATTER, 5, 1, 5, 1}, {RONDO_ALL_TO_ALL, 5, 5, 5, 5},
        {RONDO_GATHER, 1, 0, 1, 5},         {RONDO_SCATTER, 0, 1, 5, 1},
        {RONDO_BARRIER, 0, 0, 0, 0},        {RONDO_SEND, 1, 0, 1, 0},
        {RONDO_RECV, 0, 1, 0, 1},           {RONDO_COLLECTIVES, 0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        rondo_collective collective = wanted[i].collective;

        cr_expect(plan_input_blocks(collective, 5, 1, 3) == wanted[i].input, "%zu", i);
        cr_expect(plan_output_blocks(collective, 5, 1, 3) == wanted[i].output, "%zu", i);
        cr_expect(plan_input_blocks(collective, 5, 3, 3) == wanted[i].input_at_root, "%zu", i);
        cr_expect(plan_output_blocks(collective, 5, 3, 3) == wanted[i].output_at_root, "%zu", i);
    }
}
