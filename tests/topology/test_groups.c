/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_groups.c - recorded machines with several NUMA nodes: ranks on their cores form groups, and
 * plans in two levels over these groups are proved.
 */
#include "collectives/algorithm.h"
#include "collectives/levels/grouping.h"
#include "plan/verify/verify.h"
#include "recorded.h"
#include "topology/inside.h"

#include <criterion/criterion.h>

enum { RANKS_MAX = 64, WORDS = 16 };

/* The hardware threads of a rank that is bound to its core, as its card has them. */
static void cpus_of(const struct topology *topology, int core, uint64_t *ret_cpus)
{
    unsigned bit;

    for (int w = 0; w < WORDS; w++)
        ret_cpus[w] = 0;
    hwloc_bitmap_foreach_begin(bit, topology->core[core]->cpuset) ret_cpus[bit / 64] |= UINT64_C(1)
                                                                                        << bit % 64;
    hwloc_bitmap_foreach_end();
}

/* Ranks on cores 0, step, 2 step ... (round and round) of a recorded machine. */
static struct grouping *groups_on(const char *machine, int ranks, int step)
{
    struct topology *topology = recorded_open(machine);
    struct grouping *groups = NULL;
    int names[RANKS_MAX];

    for (int rank = 0; rank < ranks; rank++) {
        int core = rank * step % topology->cores;
        struct topology_place place, found;
        uint64_t cpus[WORDS];

        cpus_of(topology, core, cpus);
        topology_place(topology, core, topology->cores, &place);
        topology_place_of_cpus(topology, cpus, WORDS, &found);
        cr_assert_eq(topology_place_distance(&place, &found), TOPOLOGY_SAME, "rank %d on core %d",
                     rank, core);
        cr_assert(found.numa == place.numa && found.l3 == place.l3 &&
                  found.package == place.package);
        names[rank] = found.numa;
    }
    topology_close(topology);
    cr_assert_eq(grouping_make(ranks, names, &groups), RONDO_OK);
    return groups;
}

static void prove_all(const struct grouping *groups, const char *machine)
{
    struct plan *plans[RANKS_MAX];
    struct verify_report report;

    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++) {
            struct plan_request request = {(rondo_collective)c, groups->size, 0, 0, groups, NULL};

            if (!algorithms[i]->levels || !algorithms[i]->forms[c].write)
                continue;
            for (request.rank = 0; request.rank < groups->size; request.rank++)
                cr_assert_eq(algorithm_write(algorithms[i], &request, &plans[request.rank]),
                             RONDO_OK);
            cr_expect_eq(verify_plans(plans, groups->size, NULL, &report), RONDO_OK,
                         "%s %s over %d ranks of %s: %s", algorithms[i]->name,
                         rondo_collective_name(request.collective), groups->size, machine,
                         report.failure);
            for (int rank = 0; rank < groups->size; rank++)
                plan_close(plans[rank]);
        }
}

/* `expected`: how groups are described, with a rank on each of the first cores. */
static void expect_groups(const char *machine, int ranks, int step, const char *expected)
{
    struct grouping *groups = groups_on(machine, ranks, step);
    char text[200];

    grouping_describe(groups, text, sizeof(text));
    cr_expect_str_eq(text, expected, "%s, %d ranks, every %d. core: %s", machine, ranks, step,
                     text);
    prove_all(groups, machine);
    grouping_close(groups);
}

Test(groups, ranks_of_a_numa_node_are_a_group)
{
    expect_groups("two_sockets", 32, 2, "2x16");
    expect_groups("two_sockets", 4, 16, "2x2");
    expect_groups("four_sockets", 16, 2, "4x4");
    expect_groups("eight_numa", 32, 4, "8x4");
    expect_groups("plain", 4, 1, "1x4");
}

Test(groups, they_may_be_of_any_size_and_in_any_order)
{
    expect_groups("four_sockets", 11, 2, "4+4+3");
    expect_groups("eight_numa", 9, 7, "3+2+2+2");
    expect_groups("two_sockets", 8, 24, "0,0,1,0,1,1,0,1");
}

static int node_of(const struct topology *topology, const uint64_t *cpus)
{
    struct topology_place place;

    topology_place_of_cpus(topology, cpus, WORDS, &place);
    return place.numa;
}

Test(groups, a_rank_that_may_run_on_several_nodes_is_of_none)
{
    struct topology *topology = recorded_open("two_sockets");
    uint64_t cpus[WORDS], more[WORDS];

    cpus_of(topology, 0, cpus);
    cpus_of(topology, topology->cores - 1, more);
    cr_expect_eq(node_of(topology, cpus), 0);
    cr_expect_eq(node_of(topology, more), 1);
    for (int w = 0; w < WORDS; w++)
        more[w] |= cpus[w];
    cr_expect_eq(node_of(topology, more), -1);
    for (int w = 0; w < WORDS; w++)
        more[w] = 0;
    cr_expect_eq(node_of(topology, more), -1);
    topology_close(topology);
}
