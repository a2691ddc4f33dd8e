/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bootstrap.c - members of a job: they meet, or every one of them hears why not. */
#include "tests/comm/rendezvous/party.h"
#include "tests/log_copy.h"
#include "tests/patience.h"

#include "comm/rendezvous/server.h"
#include "comm/rendezvous/socket.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <endian.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_all(const struct party_rank *ranks, int count, rondo_result result,
                      const char *part)
{
    for (int i = 0; i < count; i++) {
        cr_assert_eq(ranks[i].result, result, "thread %d: %d, '%s'", i, ranks[i].result,
                     ranks[i].sentence);
        cr_assert(strstr(ranks[i].sentence, part), "thread %d says '%s', not '%s'", i,
                  ranks[i].sentence, part);
    }
}

Test(bootstrap, ranks_of_any_number_meet_over_unix_sockets_and_tcp)
{
    static const int sizes[] = {1, 2, 3, 4, 17, 64};

    for (int i = 0; i < 12; i++) {
        int size = sizes[i / 2], before = party_files();
        struct bootstrap_place place;
        struct party_rank *ranks;

        party_place(&place, i % 2);
        ranks = party_new(&place, size, 20);
        cr_assert_eq(party_run(ranks, size), size, "%d ranks at %s: '%s'", size, place.address,
                     ranks[0].sentence);
        cr_assert_eq(party_files(), before, "descriptors leaked");
        party_free(ranks);
    }
}

Test(bootstrap, five_hundred_and_twelve_threads_meet)
{
    struct party_rank *ranks = party_at(false, 512, 60);

    cr_assert_eq(party_run(ranks, 512), 512, "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(bootstrap, sixty_four_processes_meet)
{
    struct party_rank *ranks;
    int status, good = 0;

    ranks = party_at(false, 64, 20);
    for (int i = 0; i < 64; i++) {
        if (fork() == 0) {
            party_take_part(&ranks[i]);
            _exit(ranks[i].right ? 0 : 1);
        }
    }
    while (wait(&status) > 0)
        good += WIFEXITED(status) && !WEXITSTATUS(status);
    cr_assert_eq(good, 64);
    party_free(ranks);
}

Test(bootstrap, blobs_may_be_empty)
{
    struct party_rank *ranks = party_at(true, 3, 20);

    for (int i = 0; i < 3; i++)
        ranks[i].blob_bytes = 0;
    cr_assert_eq(party_run(ranks, 3), 3, "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(bootstrap, one_place_serves_job_after_job)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        struct bootstrap_place place;

        party_place(&place, tcp);
        for (int job = 0; job < 5; job++) {
            struct party_rank *ranks = party_new(&place, 3, 20);

            cr_assert_eq(party_run(ranks, 3), 3, "job %d: '%s'", job, ranks[0].sentence);
            party_free(ranks);
        }
    }
}

Test(bootstrap, ranks_that_come_before_the_server_wait_for_it)
{
    struct party_rank *ranks = party_at(true, 3, world_patience(20));
    pid_t self = getpid();

    party_start(ranks + 1, 2);
    world_await_quiet(&self, 1); /* they have found nobody */
    party_take_part(&ranks[0]);
    party_join(ranks + 1, 2);
    for (int i = 0; i < 3; i++)
        cr_assert(ranks[i].right, "rank %d: '%s'", i, ranks[i].sentence);
    party_free(ranks);
}

/* The last rank comes. */
static void complete(struct party_rank *ranks)
{
    party_start(ranks + 2, 1);
    party_join(ranks, 3);
    for (int i = 0; i < 3; i++)
        cr_expect(ranks[i].right, "rank %d: '%s'", i, ranks[i].sentence);
    party_free(ranks);
}

Test(bootstrap, ranks_that_wait_for_others_say_so_in_the_log)
{
    int log = log_copy_open("0.05");
    struct party_rank *ranks = party_at(true, 3, 120);

    party_start(ranks + 1, 1);
    cr_expect(log_copy_awaits(log, "rank 1 of 3 found no meeting point at 127.0.0.1:"));
    party_start(ranks, 1);
    cr_expect(log_copy_awaits(log, "the meeting point has waited "));
    complete(ranks);
    ranks = party_at(false, 3, 120);
    party_start(ranks, 2);
    cr_expect(log_copy_awaits(log, "rank 1 of 3 has waited "));
    complete(ranks);
    close(log);
}

/* A port that is full answers nothing, like one behind a firewall: one attempt to connect lasts. */
Test(bootstrap, a_rank_whose_meeting_point_does_not_answer_says_so_in_the_log)
{
    struct sockaddr_in where = {.sin_family = AF_INET};
    int log = log_copy_open("0.05"), full = socket(AF_INET, SOCK_STREAM, 0), fds[4];
    struct party_rank *ranks = party_at(true, 3, 120);

    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    where.sin_port = htons((uint16_t)atoi(strchr(ranks[0].place.address, ':') + 1));
    cr_assert(!bind(full, (struct sockaddr *)&where, sizeof(where)) && !listen(full, 0));
    for (int i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fds[i], (struct sockaddr *)&where, sizeof(where));
    }
    party_start(ranks + 1, 1);
    cr_expect(log_copy_awaits(log, "rank 1 of 3 found no meeting point at 127.0.0.1:"));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    close(full);
    party_start(ranks, 1);
    complete(ranks);
    close(log);
}

Test(bootstrap, two_ranks_that_claim_one_number_are_named_on_every_rank)
{
    struct party_rank *ranks;
    char part[80];
    int before = party_files();

    ranks = party_at(false, 4, 20);
    ranks[2].rank = 3;
    cr_assert_eq(party_run(ranks, 4), 0);
    snprintf(part, sizeof(part), "two ranks claimed number 3: pid %d on ", (int)getpid());
    check_all(ranks, 4, RONDO_ERROR_INVALID, part);
    cr_assert_eq(party_files(), before, "descriptors leaked");
    party_free(ranks);
}

Test(bootstrap, a_second_rank_zero_cannot_open_the_place)
{
    struct party_rank *ranks = party_at(false, 2, 2.2);

    ranks[1].rank = 0;
    cr_assert_eq(party_run(ranks, 2), 0);
    cr_assert(ranks[0].result == RONDO_ERROR_SYSTEM || ranks[1].result == RONDO_ERROR_SYSTEM);
    cr_assert(strstr(ranks[ranks[1].result == RONDO_ERROR_SYSTEM].sentence, "another program"));
    party_free(ranks);
}

Test(bootstrap, different_sizes_are_told_to_every_rank)
{
    struct party_rank *ranks = party_at(true, 4, 20);

    ranks[3].size = 5;
    cr_assert_eq(party_run(ranks, 4), 0);
    check_all(ranks, 4, RONDO_ERROR_MISMATCH, "says that the job has 5 ranks");
    cr_assert(strstr(ranks[0].sentence, "rank 3 (pid "));
    party_free(ranks);
}

Test(bootstrap, different_blobs_are_told_to_every_rank)
{
    struct party_rank *ranks = party_at(false, 3, 20);

    ranks[1].blob_bytes = 100;
    cr_assert_eq(party_run(ranks, 3), 0);
    check_all(ranks, 3, RONDO_ERROR_MISMATCH, "rank 1 (pid");
    party_free(ranks);
}

Test(bootstrap, missing_ranks_are_named_on_every_rank)
{
    struct party_rank *ranks;
    int before = party_files();

    ranks = party_at(false, 8, world_patience(0.7));
    ranks[2].rank = 7;
    ranks[5].rank = 6; /* the six that come are 0 1 7 3 4 6 */
    cr_assert_eq(party_run(ranks, 6), 0);
    check_all(ranks, 6, RONDO_ERROR_TIMEOUT, " s for ranks 2 and 5 of 8 at unix:");
    cr_assert_eq(party_files(), before, "descriptors leaked");
    party_free(ranks);
}

Test(bootstrap, one_missing_rank_and_a_run_of_them_are_named)
{
    struct bootstrap_place place;
    struct party_rank *ranks;

    party_place(&place, false);
    ranks = party_new(&place, 20, world_patience(0.5));
    ranks[1].rank = 12;
    cr_assert_eq(party_run(ranks, 2), 0);
    check_all(ranks, 2, RONDO_ERROR_TIMEOUT, "ranks 1 to 11 and 13 to 19 of 20");
    party_place(&place, false);
    party_free(ranks);
    ranks = party_new(&place, 3, world_patience(0.5));
    cr_assert_eq(party_run(ranks, 2), 0);
    check_all(ranks, 2, RONDO_ERROR_TIMEOUT, " s for rank 2 of 3");
    party_free(ranks);
}

Test(bootstrap, without_a_server_the_sentence_has_the_address_and_the_remedy)
{
    struct bootstrap_place place;
    int before = party_files();

    for (int tcp = 0; tcp < 2; tcp++) {
        struct party_rank *ranks;

        party_place(&place, tcp);
        ranks = party_new(&place, 2, world_patience(0.3));
        party_take_part(&ranks[1]);
        check_all(&ranks[1], 1, RONDO_ERROR_TIMEOUT, place.address);
        cr_assert(strstr(ranks[1].sentence, "is rank 0 running"));
        cr_assert(strstr(ranks[1].sentence, "Connection refused"), "'%s'", ranks[1].sentence);
        party_free(ranks);
    }
    cr_assert_eq(party_files(), before, "descriptors leaked");
}

Test(bootstrap, a_member_with_another_secret_is_told_and_harms_nobody)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        struct party_rank *ranks;
        struct party_rank other;

        ranks = party_at(tcp, 3, world_patience(20));
        other = ranks[2];
        other.place.secret[31] ^= 1;
        other.timeout = ranks[2].timeout / 20;
        party_start(ranks, 2);
        party_take_part(&other);
        party_start(ranks + 2, 1);
        party_join(ranks, 3);
        check_all(&other, 1, RONDO_ERROR_AUTH, "RONDO_SECRET");
        for (int i = 0; i < 3; i++)
            cr_assert(ranks[i].right, "rank %d: '%s'", i, ranks[i].sentence);
        party_free(ranks);
    }
}

Test(bootstrap, a_rank_that_dies_before_the_others_come_is_named)
{
    struct party_rank *ranks;
    pid_t both[] = {getpid(), 0};
    int status;

    ranks = party_at(false, 4, world_patience(20));
    both[1] = fork();
    if (both[1] == 0) {
        party_take_part(&ranks[3]);
        _exit(0);
    }
    party_start(ranks, 2);
    world_await_quiet(both, 2);
    kill(both[1], SIGKILL); /* it dies while it waits */
    waitpid(both[1], &status, 0);
    party_join(ranks, 2);
    cr_assert(WIFSIGNALED(status));
    check_all(ranks, 2, RONDO_ERROR_PEER, "rank 3 (pid ");
    cr_assert(strstr(ranks[0].sentence, "went away"));
    party_free(ranks);
}

Test(bootstrap, wrong_arguments_get_sentences)
{
    static const struct {
        int rank, size;
        const char *address, *part;
    } cases[] = {
        {4, 4, "unix:x", "rank 4 of 4: ranks go from 0 to 3"},
        {-1, 4, "unix:x", "rank -1 of 4"},
        {0, 0, "unix:x", "a job of 0 ranks"},
        {0, -5, "unix:x", "a job of -5 ranks"},
        {0, 2, "", "'' is no address"},
        {0, 2, "unix:", "'unix:' is no address"},
        {1, 2, "host", "'host' is no address"},
        {1, 2, "host:", "'host:' is no address"},
        {1, 2, "host:70000", "'host:70000' is no address"},
        {1, 2, "host:12x", "is no address"},
        {1, 2, ":12", "is no address"},
        {1, 2, "::1:12", "is no address"},
        {1, 2, "[]:12", "is no address"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bootstrap_place place = {.address = ""};
        struct party_rank *ranks;

        strcpy(place.address, cases[i].address);
        ranks = party_new(&place, 1, 1);
        ranks[0].rank = cases[i].rank;
        ranks[0].size = cases[i].size;
        party_take_part(&ranks[0]);
        check_all(ranks, 1, RONDO_ERROR_INVALID, cases[i].part);
        party_free(ranks);
    }
}

Test(bootstrap, an_unknown_host_is_in_the_sentence)
{
    struct bootstrap_place place;
    struct party_rank *ranks;

    party_place(&place, false);
    strcpy(place.address, "no host has this name:1234");
    ranks = party_new(&place, 2, 0.5);
    party_take_part(&ranks[1]);
    check_all(&ranks[1], 1, RONDO_ERROR_TIMEOUT, "no host has this name:1234 for 0.5 s (");
    party_free(ranks);
}

/* ---- Watches --------------------------------------------------------------------------------- */

static rondo_result look_long(void *context)
{
    int *looks = context;

    return ++*looks < 50 ? RONDO_OK : rondo_fail(RONDO_ERROR_INVALID, "somebody else came");
}

Test(bootstrap, who_serves_looks_on_for_as_long_as_the_watch_wants_when_all_have_come)
{
    int looks = 0;
    const struct bootstrap_watch watch = {.look = look_long, .settle = 300, .context = &looks};
    struct party_rank *ranks = party_at(false, 2, 300);
    struct bootstrap_part part = {.place = &ranks[0].place,
                                  .size = 2,
                                  .serve = true,
                                  .timeout = ranks[0].timeout,
                                  .watch = &watch};
    unsigned char blob[PARTY_BLOB] = {0}, blobs[2 * PARTY_BLOB];

    party_start(&ranks[1], 1);
    cr_expect_eq(bootstrap_take_part(&part, blob, sizeof(blob), blobs), RONDO_ERROR_INVALID);
    party_join(&ranks[1], 1);
    check_all(&ranks[1], 1, RONDO_ERROR_INVALID, "somebody else came");
    cr_expect_eq(looks, 50);
    party_free(ranks);
}

static __attribute__((noinline)) void fill_stack(void)
{
    unsigned char bytes[16384];

    memset(bytes, 1, sizeof(bytes));
    __asm__("" : : "r"(bytes) : "memory");
}

Test(bootstrap, a_rank_is_missing_until_its_blob_is_there)
{
    const struct bootstrap_place place = {.address = "here"};
    const struct server_task task = {.place = &place};
    struct wire_claim claim = {.size = htole32(3), .pid = htole32(7), .host = "a"};
    struct roster roster;

    cr_assert_eq(roster_init(&roster, &task), RONDO_OK);
    for (uint32_t rank = 0; rank < 2; rank++) {
        claim.rank = htole32(rank);
        fill_stack(); /* what lay there before is nothing that a rank has done */
        cr_assert(roster_claim(&roster, &claim, 8));
    }
    roster_time_out(&roster, 1, 0);
    cr_expect(strstr(roster.sentence, "for ranks 0 to 2 of 3 at here"), "%s", roster.sentence);
    roster_done(&roster);
}
