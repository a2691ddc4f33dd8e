/* SPDX-License-Identifier: BSD-3-Clause */
/* test_choose.c - decisions: wishes, orders, promises, and that they are made once. */
#include "base/fail.h"
#include "comm/engine/choose.h"
#include "comm/state/comm.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };

static rondo_comm *comms[RANKS];

static void open_ranks(const char *algorithm, int deterministic)
{
    rondo_config config = RONDO_CONFIG_INIT;

    setenv("RONDO_COSTS", "1,5,5", 1);
    config.algorithm = algorithm;
    config.deterministic = deterministic;
    cr_assert(rondo_comm_open_all(RANKS, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_ranks(void)
{
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(comms[r]);
}

static struct choice_key key_of(rondo_collective collective, size_t count)
{
    return (struct choice_key){.collective = collective, .type = RONDO_FLOAT32, .count = count};
}

static struct choice *decide(int rank, const struct choice_key *key)
{
    struct choice *choice = NULL;

    cr_assert(choose(comms[rank], key, &choice) == RONDO_OK, "%s", fail_sentence());
    return choice;
}

Test(choose, all_ranks_choose_alike_and_agree_on_the_fingerprint)
{
    open_ranks("auto", 0);
    for (int c = 0; c < RONDO_SEND; c++)
        for (size_t count = 1; count < 1 << 24; count *= 37) {
            struct choice_key key = key_of((rondo_collective)c, count);
            uint32_t hash = decide(0, &key)->hash;
            const char *algorithm = decide(0, &key)->plan->algorithm;

            for (int r = 1; r < RANKS; r++) {
                cr_expect(decide(r, &key)->hash == hash);
                cr_expect_str_eq(decide(r, &key)->plan->algorithm, algorithm);
            }
        }
    close_ranks();
}

Test(choose, a_different_call_has_a_different_fingerprint)
{
    struct choice_key keys[] = {key_of(RONDO_ALL_REDUCE, 100), key_of(RONDO_ALL_REDUCE, 101),
                                key_of(RONDO_REDUCE, 100),     key_of(RONDO_REDUCE, 100),
                                key_of(RONDO_ALL_REDUCE, 100), key_of(RONDO_ALL_REDUCE, 100)};

    open_ranks("auto", 0);
    keys[3].root = 1;
    keys[4].type = RONDO_INT32;
    keys[5].op = RONDO_MAX;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++)
            cr_expect(decide(0, &keys[i])->kind.record.fingerprint !=
                          decide(0, &keys[j])->kind.record.fingerprint,
                      "%d %d", i, j);
    close_ranks();
}

Test(choose, a_wish_for_the_whole_communicator_falls_back_where_there_is_no_such_form)
{
    const struct algorithm *ring = algorithm_find("ring");
    int without = 0;

    open_ranks("ring", 0);
    for (int c = 0; c < RONDO_SEND; c++) {
        struct choice_key key = key_of((rondo_collective)c, 100);
        bool is_ring = strcmp(decide(0, &key)->plan->algorithm, "ring") == 0;

        cr_expect(is_ring == (ring->forms[c].write != NULL));
        without += !ring->forms[c].write;
    }
    cr_expect(without > 0, "this test needs a collective without a ring");
    close_ranks();
}

Test(choose, an_order_for_one_call_is_refused_where_there_is_no_such_form)
{
    const struct algorithm *ring = algorithm_find("ring");

    open_ranks("auto", 0);
    for (int c = 0; c < RONDO_SEND; c++) {
        struct choice_key key = key_of((rondo_collective)c, 100);
        struct choice *choice = NULL;
        rondo_result result;

        key.algorithm = "ring";
        result = choose(comms[0], &key, &choice);
        cr_expect(result == (ring->forms[c].write ? RONDO_OK : RONDO_ERROR_UNSUPPORTED));
        if (result)
            cr_expect(!choice && strstr(fail_sentence(), "ring"), "%s", fail_sentence());
    }
    close_ranks();
}

Test(choose, memory_that_can_not_be_reached_is_not_asked_for)
{
    open_ranks("zero_copy", 0);
    for (int c = 0; c < RONDO_SEND; c++) {
        struct choice_key key = key_of((rondo_collective)c, 1 << 20);

        cr_expect(decide(0, &key)->plan->collective == key.collective);
        key.no_peer_memory = true;
        cr_expect(decide(0, &key)->plan->address_messages == 0);
    }
    close_ranks();
}

Test(choose, deterministic_sums_get_plans_that_keep_the_tree)
{
    static const rondo_type types[] = {RONDO_FLOAT32, RONDO_BFLOAT16, RONDO_INT32};

    open_ranks("auto", 1);
    for (int t = 0; t < 3; t++)
        for (size_t count = 1; count < 1 << 24; count *= 63) {
            struct choice_key key = key_of(RONDO_ALL_REDUCE, count);
            const struct algorithm *algorithm;
            unsigned promises;

            key.type = types[t];
            algorithm = algorithm_find(decide(0, &key)->plan->algorithm);
            promises = algorithm->forms[RONDO_ALL_REDUCE].promises;
            cr_expect(types[t] == RONDO_INT32 || promises & PROMISE_BALANCED);
            cr_expect(types[t] != RONDO_BFLOAT16 || promises & PROMISE_ONE_ROUND);
        }
    close_ranks();
}

static void keep_last(void *context, const void *in, void *inout, size_t count, rondo_type type)
{
}

Test(choose, operations_that_do_not_commute_keep_the_order_of_ranks)
{
    struct choice_key key = key_of(RONDO_ALL_REDUCE, 100000);
    const struct algorithm *algorithm;

    open_ranks("auto", 0);
    cr_assert(rondo_op_create_user(comms[0], keep_last, NULL, 0, &key.op) == RONDO_OK);
    algorithm = algorithm_find(decide(0, &key)->plan->algorithm);
    cr_expect(algorithm->forms[RONDO_ALL_REDUCE].promises & PROMISE_RANK_ORDER);
    key.op = 12345;
    cr_expect(choose(comms[0], &key, &(struct choice *){NULL}) == RONDO_ERROR_INVALID);
    close_ranks();
}

/* Opens a communicator as if this were one of 4 ranks that have one core between them. */
static void open_on_one_core(void)
{
    cpu_set_t before, one;
    int cpu = 0;

    cr_assert(sched_getaffinity(0, sizeof(before), &before) == 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert(sched_setaffinity(0, sizeof(one), &one) == 0);
    open_ranks("auto", 0);
    cr_expect(sched_setaffinity(0, sizeof(before), &before) == 0);
}

Test(choose, an_all_reduce_of_ranks_that_share_cores_uses_little_memory_between_them)
{
    const struct choice_key sum = {.collective = RONDO_ALL_REDUCE,
                                   .type = RONDO_FLOAT32,
                                   .count = 1 << 20,
                                   .no_peer_memory = true};
    struct choice_key gather = sum;
    struct choice *choice;
    const struct plan *plan;

    open_on_one_core();
    gather.collective = RONDO_ALL_GATHER;
    cr_assert(comms[1]->tuning.segments[RONDO_ALL_REDUCE].in_one_place);
    for (int channel = 0; channel < PLAN_CHANNELS; channel++) {
        bool shallow = channel >= PLAN_CHANNEL_SHALLOW && channel != PLAN_CHANNEL_P2P;
        uint32_t slots = shallow ? 2 : (uint32_t)comms[1]->settings.slots;

        cr_expect_eq(comms[1]->world.out[channel * RANKS].slot_count, slots);
        cr_expect_eq(comms[1]->world.in[channel * RANKS].slot_count, slots);
    }
    choice = decide(1, &sum);
    plan = choice->plan;
    cr_expect_eq(choice->shape.longest, 64 << 10);
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].verb == PLAN_WAIT)
            cr_expect(plan->steps[i].channel >= PLAN_CHANNEL_SHALLOW);
    cr_expect_eq(decide(1, &gather)->shape.longest, 128 << 10, "others run ahead");
    close_ranks();
}

Test(choose, an_all_reduce_of_ranks_with_a_core_each_uses_whole_slots)
{
    struct choice_key key = key_of(RONDO_ALL_REDUCE, 1 << 20);

    open_on_one_core();
    key.no_peer_memory = true;
    comms[0]->tuning.segments[RONDO_ALL_REDUCE] = comms[0]->tuning.segments[RONDO_BROADCAST];
    cr_expect_eq(decide(0, &key)->shape.longest, 128 << 10);
    close_ranks();
}

/* Another key in between: whoever asks for the same one again is answered from the last choice. */
Test(choose, a_decision_is_made_once_and_its_plan_kept)
{
    struct choice_key key = key_of(RONDO_ALL_REDUCE, 1000), other = key_of(RONDO_ALL_REDUCE, 1001);
    const struct plan *plan;
    struct choice *first;
    unsigned made;

    open_ranks("ring", 0);
    made = comms[0]->choices.made;
    first = decide(0, &key);
    plan = first->plan;
    cr_expect(decide(0, &other)->plan == plan, "plans know no counts");
    cr_expect(decide(0, &other)->shape.count == 1001);
    cr_expect(decide(0, &key) == first && first->plan == plan);
    cr_expect_eq(comms[0]->choices.made, made + 2);
    key.root = 2;
    key.collective = RONDO_BROADCAST;
    plan = decide(0, &key)->plan;
    key.root = 1;
    cr_expect(decide(0, &key)->plan != plan, "but roots");
    close_ranks();
}

Test(choose, the_second_attempt_without_peers_memory_does_not_push_out_the_first)
{
    struct choice_key key = key_of(RONDO_ALL_GATHER, 1 << 16), second = key;
    struct choice *choice;

    open_ranks("auto", 0);
    second.no_peer_memory = true;
    choice = decide(1, &key);
    cr_expect(decide(1, &second) != choice);
    cr_expect(choice->valid && !choice->key.no_peer_memory && decide(1, &key) == choice);
    close_ranks();
}
