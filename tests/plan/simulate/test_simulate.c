/* SPDX-License-Identifier: BSD-3-Clause */
/* test_simulate.c - times that can be worked out by hand, and laws that all of them obey. */
#include "tests/plan/simulate/call.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double value, double expected, const char *what, int ranks)
{
    cr_assert(fabs(value - expected) <= 1e-6 * fabs(expected), "%s, %d ranks: %.9g, not %.9g", what,
              ranks, value, expected);
}

static struct outcome run_good(const struct call *call)
{
    struct outcome outcome;

    cr_assert(call_run(call, &outcome));
    cr_assert_eq(outcome.result, RONDO_OK, "%s: %s", call->algorithm, fail_sentence());
    return outcome;
}

static double seconds_of(const struct call *call)
{
    struct outcome outcome = run_good(call);
    double seconds = outcome.times.seconds;

    call_close(&outcome);
    return seconds;
}

/* alpha = 1 us, beta = 1 / (10 GB/s). */
Test(simulate, a_ring_takes_what_alpha_and_beta_say)
{
    for (int ranks = 2; ranks <= 17; ranks++)
        for (double bytes = 1000; bytes <= 1e6; bytes *= 10) {
            struct call call = {.algorithm = "ring",
                                .topology = "alpha-beta,slot_bytes=1048576",
                                .collective = RONDO_ALL_REDUCE,
                                .ranks = ranks,
                                .block_bytes = bytes};

            assert_near(seconds_of(&call), 2 * (ranks - 1) * (1e-6 + bytes / ranks / 10e9), "ring",
                        ranks);
        }
}

Test(simulate, halving_takes_two_logarithms_of_latency_and_the_least_traffic)
{
    for (int ranks = 2, rounds = 1; ranks <= 64; ranks *= 2, rounds++) {
        struct call call = {.algorithm = "halving",
                            .topology = "alpha-beta,slot_bytes=1048576",
                            .collective = RONDO_ALL_REDUCE,
                            .ranks = ranks,
                            .block_bytes = 64000};

        assert_near(seconds_of(&call), 2 * rounds * 1e-6 + 2 * (ranks - 1) * 64000.0 / ranks / 10e9,
                    "halving", ranks);
    }
}

Test(simulate, a_chain_is_pipelined_through_all_of_its_segments)
{
    /* A slot holds a segment: the last of 10 leaves 9 messages after the first. */
    struct call call = {.algorithm = "ring",
                        .topology = "alpha-beta,slot_bytes=65536",
                        .collective = RONDO_BROADCAST,
                        .ranks = 5,
                        .block_bytes = 655360};

    assert_near(seconds_of(&call), 4 * (1e-6 + 65536 / 10e9) + 9 * 65536 / 10e9, "chain", 5);
}

Test(simulate, one_rank_and_no_bytes_take_no_more_than_latency)
{
    struct call call = {.algorithm = "ring",
                        .topology = "alpha-beta",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 1,
                        .block_bytes = 1000};

    cr_assert(seconds_of(&call) < 1e-9);
    call.ranks = 4;
    call.block_bytes = 0;
    assert_near(seconds_of(&call), 6e-6, "no bytes", 4);
}

/* ---- Laws ------------------------------------------------------------------------------------ */

static const char *const machines[] = {
    "alpha-beta",
    "here",
    "hosts",
    "dgx",
    "dgx,host_ranks=4,nics=2",
    "pcie",
    "fat-tree",
    "rails",
    "torus2d",
    "torus3d",
    "dragonfly",
    "fat-tree,leaf_hosts=2,routes=fixed",
    "dgx,fabric=tree,leaf_hosts=1,oversubscription=4",
    "hosts,host_ranks=2,message_us=0",
    "torus2d,x=4,y=4",
    "rails,leaf_hosts=1",
};
enum { MACHINES = sizeof(machines) / sizeof(machines[0]) };

Test(simulate, what_is_sent_arrives_and_no_time_is_negative)
{
    for (int m = 0; m < MACHINES; m++)
        for (int a = 0; algorithms[a]; a++)
            for (int c = 0; c < RONDO_COLLECTIVES; c++) {
                struct call call = {.algorithm = algorithms[a]->name,
                                    .topology = machines[m],
                                    .collective = (rondo_collective)c,
                                    .ranks = 5 + (a + c + m) % 12,
                                    .block_bytes = 1e6,
                                    .records = true,
                                    .unfolded = true};
                struct outcome outcome;

                if (c == RONDO_SEND || c == RONDO_RECV || !call_run(&call, &outcome))
                    continue;
                cr_assert_eq(outcome.result, RONDO_OK, "%s: %s", call.algorithm, fail_sentence());
                assert_near(outcome.times.sent, outcome.times.received, call.algorithm, call.ranks);
                for (uint32_t i = 0; i < outcome.times.record_count; i++) {
                    const struct record *record = &outcome.times.records[i];

                    cr_assert(record->begin >= 0 && record->end > record->begin);
                    cr_assert_lt(record->before, i + 1);
                    if (record->before)
                        cr_assert(outcome.times.records[record->before - 1].end <=
                                  record->end + 1e-12);
                }
                call_close(&outcome);
            }
}

/* A link cannot have carried more than it can. */
Test(simulate, no_link_carries_more_than_its_bandwidth)
{
    for (int m = 0; m < MACHINES; m++)
        for (int a = 0; algorithms[a]; a++) {
            struct call call = {.algorithm = algorithms[a]->name,
                                .topology = machines[m],
                                .collective = RONDO_ALL_REDUCE,
                                .ranks = 16,
                                .block_bytes = 3e6};
            struct outcome outcome;

            if (!call_run(&call, &outcome))
                continue;
            cr_assert_eq(outcome.result, RONDO_OK, "%s: %s", call.algorithm, fail_sentence());
            for (uint32_t i = 0; i < outcome.programs->share.link_count; i++)
                cr_assert(outcome.times.link_bytes[i] <=
                          outcome.programs->share.links[i].bandwidth * outcome.times.end *
                              (1 + 1e-6));
            call_close(&outcome);
        }
}

Test(simulate, folded_ranks_take_exactly_what_all_of_them_take)
{
    static const int sizes[] = {2, 3, 8, 12, 16};
    int folded = 0;

    for (int m = 0; m < MACHINES; m++)
        for (int a = 0; algorithms[a]; a++)
            for (int c = 0; c < RONDO_COLLECTIVES; c++)
                for (int s = 0; s < (int)(sizeof(sizes) / sizeof(sizes[0])); s++) {
                    struct call call = {.algorithm = algorithms[a]->name,
                                        .topology = machines[m],
                                        .collective = (rondo_collective)c,
                                        .ranks = sizes[s],
                                        .block_bytes = 4e5};
                    struct outcome outcome, whole;
                    double all;

                    if (c == RONDO_SEND || c == RONDO_RECV || !call_run(&call, &outcome))
                        continue;
                    cr_assert_eq(outcome.result, RONDO_OK, "%s: %s", call.algorithm,
                                 fail_sentence());
                    if (outcome.programs->fold.period < call.ranks && !outcome.times.cut) {
                        call.unfolded = true;
                        whole = run_good(&call);
                        all = whole.times.seconds;
                        /* Where rates are worked out in part only, that part is not the same. */
                        cr_assert(
                            whole.times.cut || fabs(outcome.times.seconds - all) <= 1e-6 * all,
                            "%s %s, %d ranks of %s: %.9g folded to %d, not %.9g", call.algorithm,
                            rondo_collective_name(call.collective), call.ranks, call.topology,
                            outcome.times.seconds, outcome.programs->fold.period, all);
                        folded += !whole.times.cut;
                        call_close(&whole);
                    }
                    call_close(&outcome);
                }
    cr_assert_gt(folded, 200);
}

Test(simulate, the_same_call_takes_the_same_and_another_seed_another_time)
{
    struct call call = {.algorithm = "tree",
                        .topology = "fat-tree",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 13,
                        .block_bytes = 1e6,
                        .unfolded = true,
                        .more = {.jitter = 0.2, .seed = 7}};
    double first = seconds_of(&call), again = seconds_of(&call);

    cr_assert(first <= again && first >= again);
    call.more.seed = 8;
    again = seconds_of(&call);
    cr_assert(first < again || first > again);
}

Test(simulate, segments_that_are_not_run_take_what_they_would_have_taken)
{
    static const char *const names[] = {"ring", "tree", "direct", "binomial"};

    for (int i = 0; i < 4; i++) {
        struct call call = {.algorithm = names[i],
                            .topology = "dgx",
                            .collective = RONDO_ALL_REDUCE,
                            .ranks = 8,
                            .block_bytes = 2e9,
                            .more = {.segments_most = -1}};
        double some = seconds_of(&call), all;

        call.more.segments_most = 0;
        all = seconds_of(&call);
        cr_assert(fabs(some - all) <= 0.01 * all, "%s: %.9g, not %.9g", names[i], some, all);
    }
}

/* ---- Slow and failed ------------------------------------------------------------------------- */

Test(simulate, a_slow_rank_makes_all_slow)
{
    struct simulate_slow slow = {5, 20};
    struct call call = {.algorithm = "ring",
                        .topology = "here",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 8,
                        .block_bytes = 8e6,
                        .unfolded = true};
    double before = seconds_of(&call);

    call.more.slow = &slow;
    call.more.slow_count = 1;
    cr_assert_gt(seconds_of(&call), 2 * before);
}

Test(simulate, half_of_a_link_takes_twice_the_time)
{
    struct simulate_fault fault = {.hop = {HOP_NIC_OUT, 2, -1}, .factor = 0.5};
    struct call call = {.algorithm = "ring",
                        .topology = "alpha-beta,network_us=0",
                        .collective = RONDO_BROADCAST,
                        .ranks = 4,
                        .block_bytes = 1e5};
    double before = seconds_of(&call);

    call.faults = &fault;
    call.fault_count = 1;
    /* Three links one after the other, of which the last takes as long as two. */
    assert_near(seconds_of(&call), before * 4 / 3, "half a link", 4);
}

Test(simulate, a_failed_link_is_named_with_those_who_wait)
{
    struct simulate_fault fault = {.hop = {HOP_UPLINK, 1, -1}, .factor = 0};
    struct call call = {.algorithm = "ring",
                        .topology = "fat-tree,leaf_hosts=4",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 16,
                        .block_bytes = 1e6,
                        .faults = &fault,
                        .fault_count = 1};
    struct outcome outcome;

    cr_assert(call_run(&call, &outcome));
    cr_assert_eq(outcome.result, RONDO_ERROR_UNSUPPORTED);
    cr_assert_not_null(strstr(fail_sentence(), "uplink of leaf switch 1"), "%s", fail_sentence());
    cr_assert_not_null(strstr(fail_sentence(), "Rank 8 waits for rank 7"), "%s", fail_sentence());
    call_close(&outcome);
    /* One of four uplinks that are used as one. */
    fault.hop.sub = 2;
    cr_assert_gt(seconds_of(&call), 0);
}

Test(simulate, failed_uplinks_of_a_switch_add_up)
{
    const struct simulate_fault faults[] = {{.hop = {HOP_UPLINK, 0, 0}, .factor = 0.5},
                                            {.hop = {HOP_UPLINK, 0, 0}, .factor = 0},
                                            {.hop = {HOP_UPLINK, 0, 1}, .factor = 0},
                                            {.hop = {HOP_UPLINK, 0, 3}, .factor = 0},
                                            {.hop = {HOP_UPLINK, 0, 2}, .factor = 0}};
    /* Rank 0 fills the uplinks of its switch; all else has room. */
    struct call call = {.algorithm = "direct",
                        .topology = "fat-tree,leaf_hosts=2,oversubscription=8,network_us=0,"
                                    "hop_us=0,message_us=0,step_us=0,copy_GBps=1e9",
                        .collective = RONDO_SCATTER,
                        .ranks = 4,
                        .block_bytes = 1e5,
                        .faults = faults};
    double whole = seconds_of(&call);
    struct outcome outcome;

    call.fault_count = 2;
    assert_near(seconds_of(&call), whole * 4 / 3, "one of 4, named twice", 4);
    call.fault_count = 4;
    assert_near(seconds_of(&call), whole * 4, "three of 4", 4);
    call.fault_count = 5;
    cr_assert(call_run(&call, &outcome));
    cr_assert_eq(outcome.result, RONDO_ERROR_UNSUPPORTED);
    cr_assert_not_null(strstr(fail_sentence(), "uplink of leaf switch 0"), "%s", fail_sentence());
    call_close(&outcome);
}

Test(simulate, oversubscribed_cores_are_slower_by_as_much)
{
    struct call call = {.algorithm = "halving",
                        .topology = "fat-tree,leaf_hosts=4,oversubscription=1,message_us=0,"
                                    "network_us=0,hop_us=0,step_us=0,copy_GBps=1e9,reduce_GBps=1e9",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 16,
                        .block_bytes = 64000};
    double full = seconds_of(&call);

    call.topology = "fat-tree,leaf_hosts=4,oversubscription=4,message_us=0,network_us=0,hop_us=0,"
                    "step_us=0,copy_GBps=1e9,reduce_GBps=1e9";
    /* Rounds of 1/2 and 1/4 of the vector go within leaves, 1/8 and 1/16 through the core. */
    assert_near(seconds_of(&call), full * (0.75 + 4 * 0.1875) / 0.9375, "halving", 16);
}

Test(simulate, keys_and_numbers_that_make_no_machine_are_refused)
{
    static const char *const wrong[] = {"",
                                        "dgx2",
                                        "dgx,nics",
                                        "dgx,nics=0",
                                        "dgx,nics=2x",
                                        "dgx,nic_GBps=-1",
                                        "dgx,nic_GBps=0",
                                        "dgx,fabric=mesh",
                                        "dgx,wires=3",
                                        "dgx,nic_GBps=nan",
                                        "dgx,x=99999999999"};
    struct machine machine;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert_eq(machine_parse(wrong[i], &machine), RONDO_ERROR_INVALID, "%s", wrong[i]);
    cr_assert_eq(machine_parse("dgx,nics=3", &machine), RONDO_OK);
    cr_assert_eq(machine_check(&machine, 16), RONDO_ERROR_INVALID);
    cr_assert_eq(machine_parse("torus2d", &machine), RONDO_OK);
    cr_assert_eq(machine_check(&machine, 257), RONDO_ERROR_INVALID);
}

Test(simulate, machines_of_more_ranks_than_are_counted_are_refused)
{
    static const char *const large[] = {"torus2d,x=65536,y=65536",
                                        "torus2d,x=8190,y=2",
                                        "torus3d,x=2147483647,y=2147483647,z=2147483647",
                                        "dragonfly,leaf_hosts=65536,spines=65536",
                                        "dgx,fabric=tree,leaf_hosts=536870912",
                                        "rails,leaf_hosts=536870912",
                                        "rails,spines=536870912"};
    static const char *const good[] = {
        "torus3d,x=1024,y=1024,z=1024", "torus2d,x=8189,y=1", "dgx,leaf_hosts=536870912",
        "dragonfly,leaf_hosts=65536,spines=16384", "fat-tree,leaf_hosts=1073741824"};
    struct call call = {
        .algorithm = "ring", .collective = RONDO_ALL_REDUCE, .ranks = 16, .block_bytes = 1e4};
    struct machine machine;

    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        cr_assert_eq(machine_parse(large[i], &machine), RONDO_OK, "%s", large[i]);
        cr_assert_eq(machine_check(&machine, 16), RONDO_ERROR_INVALID, "%s", large[i]);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        call.topology = good[i];
        cr_assert_gt(seconds_of(&call), 0, "%s", good[i]);
    }
}

Test(simulate, more_segments_than_are_counted_are_refused)
{
    struct call call = {.algorithm = "ring",
                        .topology = "alpha-beta,slot_bytes=4",
                        .collective = RONDO_BROADCAST,
                        .ranks = 4,
                        .block_bytes = 1e15,
                        .more = {.segments_most = 16}};
    struct outcome outcome;

    cr_assert(call_run(&call, &outcome));
    cr_assert_eq(outcome.result, RONDO_ERROR_UNSUPPORTED);
    cr_assert_not_null(strstr(fail_sentence(), "too many: set slot_bytes"), "%s", fail_sentence());
    call_close(&outcome);
}

Test(simulate, slots_that_are_too_small_are_refused)
{
    struct call call = {.algorithm = "halving",
                        .topology = "alpha-beta,slot_bytes=64",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 64,
                        .block_bytes = 1e6};
    struct outcome outcome;

    cr_assert(call_run(&call, &outcome));
    cr_assert_eq(outcome.result, RONDO_ERROR_UNSUPPORTED);
    cr_assert_not_null(strstr(fail_sentence(), "slot_bytes"));
    call_close(&outcome);
}

/* 450 GB/s of NVLink less 20 % of protocol: NCCL reaches 370 GB/s there (docs/simulator.md). */
Test(simulate, a_ring_of_eight_h100_is_as_fast_as_it_was_seen_to_be)
{
    struct call call = {.algorithm = "ring",
                        .topology = "dgx,slot_bytes=16777216",
                        .collective = RONDO_ALL_REDUCE,
                        .ranks = 8,
                        .block_bytes = 8e9,
                        .more = {.segments_most = -1}};
    double bus = 8e9 / seconds_of(&call) * 2 * 7 / 8;

    cr_assert(bus > 0.9 * 370e9 && bus < 1.1 * 370e9, "%.9g", bus);
}
