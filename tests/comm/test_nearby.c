/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nearby.c - groups of ranks: from the setting, from endpoints of several hosts. */
#include "collectives/levels/grouping.h"
#include "comm/engine/choose.h"
#include "comm/open.h"
#include "comm/state/comm.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A communicator that is nothing but endpoints: rank r is on host hosts[r]. */
static rondo_result find(const char *hosts, struct grouping **ret_groups)
{
    const char *groups = getenv("RONDO_GROUPS");
    rondo_comm comm = {.size = (int)strlen(hosts), .settings.groups = groups ? groups : ""};
    rondo_result result;

    comm.endpoints = calloc((size_t)comm.size, sizeof(*comm.endpoints));
    for (int r = 0; r < comm.size; r++)
        comm.endpoints[r].host[3] = (unsigned char)hosts[r];
    result = comm_find_groups(&comm);
    free(comm.endpoints);
    free(comm.order);
    *ret_groups = comm.groups;
    return result;
}

static void expect_groups(const char *hosts, const char *expected)
{
    struct grouping *groups;
    char text[64] = "none";

    cr_assert(find(hosts, &groups) == RONDO_OK, "%s", rondo_last_error(NULL));
    if (groups)
        grouping_describe(groups, text, sizeof(text));
    cr_expect_str_eq(text, expected, "%s: %s", hosts, text);
    grouping_close(groups);
}

Test(nearby, ranks_of_a_host_are_a_group)
{
    unsetenv("RONDO_GROUPS");
    expect_groups("aabb", "2x2");
    expect_groups("baba", "0,1,0,1");
    expect_groups("aaaabbbc", "4+3+1");
    expect_groups("abcad", "0,1,2,0,3");
}

Test(nearby, the_setting_goes_before_hosts)
{
    setenv("RONDO_GROUPS", "2*", 1);
    expect_groups("aabb", "0,1,0,1");
    setenv("RONDO_GROUPS", "3+1", 1);
    expect_groups("aaaa", "3+1");
    setenv("RONDO_GROUPS", "4", 1);
    expect_groups("aabb", "none");
}

Test(nearby, a_setting_about_other_ranks_is_not_for_a_smaller_communicator)
{
    setenv("RONDO_GROUPS", "4x2", 1);
    expect_groups("abab", "0,1,0,1");
}

Test(nearby, a_setting_that_names_no_groups_is_refused_with_its_name)
{
    struct grouping *groups;

    setenv("RONDO_GROUPS", "several", 1);
    cr_expect_eq(find("aabb", &groups), RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "RONDO_GROUPS"), "%s", rondo_last_error(NULL));
    cr_expect_null(groups);
}

Test(nearby, every_rank_of_a_communicator_has_the_groups_and_plans_are_chosen_by_them)
{
    rondo_comm *comms[4];
    struct choice *choice;
    const struct choice_key key = {
        .collective = RONDO_ALL_REDUCE, .type = RONDO_FLOAT32, .count = 10000000};

    setenv("RONDO_GROUPS", "2x2", 1);
    setenv("RONDO_COSTS", "1,50,50,100,0.05,1", 1); /* far apart */
    cr_assert(rondo_comm_open_all(4, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < 4; r++) {
        cr_assert_not_null(comms[r]->groups);
        cr_expect_eq(comms[r]->groups->groups, 2);
        cr_assert_eq(choose(comms[r], &key, &choice), RONDO_OK);
        cr_expect(strstr(choice->plan->algorithm, "hierarchy"), "%s", choice->plan->algorithm);
    }
    for (int r = 0; r < 4; r++)
        rondo_comm_close(comms[r]);
}

static const struct choice *choose_sum(rondo_comm *comm, size_t count)
{
    const struct choice_key key = {
        .collective = RONDO_ALL_REDUCE, .type = RONDO_UINT8, .count = count};
    struct choice *choice = NULL;

    cr_assert_eq(choose(comm, &key, &choice), RONDO_OK);
    cr_assert_str_eq(choice->plan->algorithm, "hierarchy");
    return choice;
}

/* Two groups of two: a message inside carries two atoms, one across groups carries one. */
Test(nearby, vectors_of_many_segments_cross_hosts_in_messages_as_long_as_a_slot)
{
    size_t slot = 65536;
    rondo_comm *comms[4];

    setenv("RONDO_SLOT_BYTES", "65536", 1);
    setenv("RONDO_GROUPS", "2x2", 1);
    setenv("RONDO_TRANSPORT", "tcp", 1); /* as if each were on a host of its own */
    setenv("RONDO_ALGORITHM", "hierarchy", 1);
    cr_assert(rondo_comm_open_all(4, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < 4; r++) {
        cr_expect_eq(choose_sum(comms[r], 2 * slot)->shape.segment, 2 * slot);
        cr_expect_eq(choose_sum(comms[r], 2 * slot)->plan->message_atoms, 2);
        cr_expect_eq(choose_sum(comms[r], 16 * slot)->plan->message_atoms, 2);
        cr_expect_eq(choose_sum(comms[r], 16 * slot)->shape.segment, 2 * slot);
        cr_expect_eq(choose_sum(comms[r], 17 * slot)->plan->message_atoms, 1);
        cr_expect_eq(choose_sum(comms[r], 17 * slot)->shape.segment, 4 * slot);
    }
    for (int r = 0; r < 4; r++)
        rondo_comm_close(comms[r]);
}
