/* SPDX-License-Identifier: BSD-3-Clause */
/* test_id.c - unique ids: made, read, used, left unused and damaged. */
#include "tests/comm/rendezvous/party.h"
#include "tests/patience.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct party_rank *party_by_id(const rondo_unique_id *id, int size)
{
    struct bootstrap_place place;
    struct party_rank *ranks;

    cr_assert_eq(bootstrap_id_read(id, &place), RONDO_OK, "%s", fail_sentence());
    ranks = party_new(&place, size, world_patience(20));
    for (int i = 0; i < size; i++)
        ranks[i].serve = false;
    return ranks;
}

Test(unique_id, ranks_meet_by_it_and_learn_its_size_from_each_other)
{
    static const int sizes[] = {1, 2, 17};

    for (int i = 0; i < 3; i++) {
        rondo_unique_id id;
        struct party_rank *ranks;

        cr_assert_eq(bootstrap_id_create(&id), RONDO_OK);
        ranks = party_by_id(&id, sizes[i]);
        cr_assert_eq(party_run(ranks, sizes[i]), sizes[i], "'%s'", ranks[0].sentence);
        party_free(ranks);
    }
}

Test(unique_id, many_at_once_do_not_mix)
{
    struct party_rank *ranks[8];
    rondo_unique_id ids[8];

    for (int i = 0; i < 8; i++) {
        cr_assert_eq(bootstrap_id_create(&ids[i]), RONDO_OK);
        ranks[i] = party_by_id(&ids[i], 3);
    }
    for (int i = 0; i < 8; i++)
        party_start(ranks[7 - i], 3);
    for (int i = 0; i < 8; i++) {
        party_join(ranks[i], 3);
        for (int r = 0; r < 3; r++)
            cr_assert(ranks[i][r].right, "'%s'", ranks[i][r].sentence);
        party_free(ranks[i]);
    }
}

Test(unique_id, works_over_tcp_when_an_address_is_given)
{
    struct bootstrap_place place;
    rondo_unique_id id;
    struct party_rank *ranks;

    setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    cr_assert_eq(bootstrap_id_create(&id), RONDO_OK);
    cr_assert_eq(bootstrap_id_read(&id, &place), RONDO_OK);
    cr_assert(!strncmp(place.address, "127.0.0.1:", 10) && strcmp(place.address, "127.0.0.1:0"),
              "%s", place.address);
    ranks = party_by_id(&id, 3);
    cr_assert_eq(party_run(ranks, 3), 3, "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(unique_id, needs_an_address_that_others_can_reach)
{
    static const char *const bad[] = {"0.0.0.0:4711", "[::]:4711", "nothing", "x:y"};

    for (int i = 0; i < 4; i++) {
        rondo_unique_id id;

        setenv("RONDO_ADDRESS", bad[i], 1);
        cr_assert_eq(bootstrap_id_create(&id), RONDO_ERROR_INVALID, "%s", bad[i]);
        cr_assert(strstr(fail_sentence(), bad[i]), "'%s'", fail_sentence());
    }
}

/* With a time-out of minutes: who comes too late is told so at once. */
static void check_used_up(void)
{
    rondo_unique_id id;
    struct party_rank *ranks;

    cr_assert_eq(bootstrap_id_create(&id), RONDO_OK);
    ranks = party_by_id(&id, 2);
    ranks[0].timeout = ranks[1].timeout = 600;
    cr_assert_eq(party_run(ranks, 2), 2);
    cr_assert_eq(party_run(ranks, 2), 0);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(ranks[i].result, RONDO_ERROR_INVALID, "'%s'", ranks[i].sentence);
        cr_expect(strstr(ranks[i].sentence, "the unique id is used up"), "'%s'", ranks[i].sentence);
    }
    party_free(ranks);
}

Test(unique_id, is_used_up_when_all_ranks_have_come)
{
    check_used_up();
    setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    check_used_up();
}

Test(unique_id, failures_are_told_to_every_rank)
{
    rondo_unique_id id;
    struct party_rank *ranks;

    cr_assert_eq(bootstrap_id_create(&id), RONDO_OK);
    ranks = party_by_id(&id, 3);
    ranks[2].rank = 1;
    cr_assert_eq(party_run(ranks, 3), 0);
    for (int i = 0; i < 3; i++)
        cr_assert(strstr(ranks[i].sentence, "two ranks claimed number 1"), "'%s'",
                  ranks[i].sentence);
    party_free(ranks);
}

Test(unique_id, is_given_up_after_the_timeout_without_leaks)
{
    rondo_unique_id id;
    struct party_rank *ranks;
    int before = party_files();
    char timeout[32];

    snprintf(timeout, sizeof(timeout), "%.2f", world_patience(0.3));
    setenv("RONDO_TIMEOUT", timeout, 1);
    cr_assert_eq(bootstrap_id_create(&id), RONDO_OK);
    ranks = party_by_id(&id, 2);
    cr_assert_eq(party_run(ranks, 1), 0);
    cr_assert(strstr(ranks[0].sentence, " s for rank 1 of 2"), "'%s'", ranks[0].sentence);
    /* The thread closes the listener; its event is closed when the next id joins it. */
    while (party_files() > before + 1)
        usleep(10000);
    cr_assert_eq(party_files(), before + 1);
    cr_assert_eq(bootstrap_id_create(&id), RONDO_OK);
    cr_assert_eq(party_files(), before + 2, "the old id has left descriptors");
    party_free(ranks);
}

/* The process ends although nobody came: quickly, and members that wait hear of it. */
Test(unique_id, goes_with_the_process_that_made_it)
{
    pid_t both[] = {getpid(), 0};
    struct party_rank *ranks;
    rondo_unique_id id;
    char command[256];
    int ends[2]; /* the process ends when it reads the end of this pipe */
    FILE *owner;

    cr_assert_eq(pipe(ends), 0);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    snprintf(command, sizeof(command), ID_OWNER " leaves <&%d", ends[0]);
    owner = popen(command, "r");
    cr_assert(owner);
    close(ends[0]);
    cr_assert_eq(fread(&id, sizeof(id), 1, owner), 1u);
    cr_assert_eq(fread(&both[1], sizeof(both[1]), 1, owner), 1u);
    ranks = party_by_id(&id, 2);
    party_start(ranks, 1);
    world_await_quiet(both, 2); /* the rank has been heard, and waits for the other one */
    close(ends[1]);
    party_join(ranks, 1);
    cr_assert_eq(pclose(owner), 0);
    cr_assert_eq(ranks[0].result, RONDO_ERROR_PEER, "'%s'", ranks[0].sentence);
    cr_assert(strstr(ranks[0].sentence, "made the unique id"), "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(unique_id, survives_a_fork_of_its_maker)
{
    cr_assert_eq(system(ID_OWNER " forks"), 0);
}

Test(unique_id, garbage_is_refused)
{
    struct bootstrap_place place = {.address = "untouched"};
    rondo_unique_id good, bad;

    memset(&bad, 0, sizeof(bad));
    cr_assert_eq(bootstrap_id_read(&bad, &place), RONDO_ERROR_INVALID);
    cr_assert(strstr(fail_sentence(), "no unique id"));
    memset(&bad, 0xff, sizeof(bad));
    cr_assert_eq(bootstrap_id_read(&bad, &place), RONDO_ERROR_INVALID);
    cr_assert_eq(bootstrap_id_create(&good), RONDO_OK);
    for (size_t i = 0; i < sizeof(good.bytes); i++) {
        bad = good;
        bad.bytes[i] ^= 0x40;
        cr_assert_eq(bootstrap_id_read(&bad, &place), RONDO_ERROR_INVALID, "byte %zu", i);
    }
    cr_assert_str_eq(place.address, "untouched");
    cr_assert_eq(bootstrap_id_read(&good, &place), RONDO_OK);
}

/* PMIx daemons carry such ids in the clear: whoever reads one lacks RONDO_SECRET. */
Test(unique_id, that_others_may_see_is_not_enough_where_there_is_a_secret)
{
    rondo_unique_id id;
    struct party_rank *ranks;

    setenv("RONDO_INTERFACE", "lo", 1);
    setenv("RONDO_SECRET", "what only the ranks know", 1);
    cr_assert_eq(bootstrap_id_create_for_hosts(&id), RONDO_OK, "%s", fail_sentence());
    ranks = party_by_id(&id, 2);
    ranks[0].timeout = world_patience(1);
    cr_assert_eq(party_run(ranks, 1), 0);
    cr_assert_eq(ranks[0].result, RONDO_ERROR_AUTH, "'%s'", ranks[0].sentence);
    for (int i = 0; i < 2; i++)
        bootstrap_place_add_secret(&ranks[i].place);
    cr_assert_eq(party_run(ranks, 2), 2, "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(unique_id, that_others_may_see_is_enough_where_there_is_none)
{
    rondo_unique_id id;
    struct party_rank *ranks;

    setenv("RONDO_INTERFACE", "lo", 1);
    cr_assert_eq(bootstrap_id_create_for_hosts(&id), RONDO_OK, "%s", fail_sentence());
    ranks = party_by_id(&id, 2);
    bootstrap_place_add_secret(&ranks[0].place);
    cr_assert_eq(party_run(ranks, 2), 2, "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(unique_id, has_no_room_for_the_longest_names)
{
    char address[200];
    rondo_unique_id id;

    snprintf(address, sizeof(address), "%0*d.example:0", 80, 0);
    cr_assert_eq(bootstrap_id_create_at(address, 1, &id), RONDO_ERROR_INVALID);
    cr_assert(strstr(fail_sentence(), "88 characters does not fit into a unique id"), "'%s'",
              fail_sentence());
}
