/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tree.c - more ranks than the meeting point keeps: they wait with each other.
 *
 * In most tests one rank is held back, so that all others wait in their places, and something
 * happens then. What every rank hears must be the same as if all had waited at the meeting point.
 */
#include "tests/comm/rendezvous/party.h"
#include "tests/patience.h"

#include "comm/rendezvous/relay_tree.h"
#include "comm/rendezvous/connector.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <endian.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Who waits where ------------------------------------------------------------------------- */

static void take_position(struct relay_tree *tree, const struct wire_position *told, unsigned rank,
                          bool local)
{
    struct wire_position says = {.moved = *told->address ? htole32(1) : 0};
    struct relay who = {.rank = rank, .local = local};

    if (told->relay)
        snprintf(says.address, sizeof(says.address), "unix:%u", rank);
    relay_tree_taken(tree, told, &says, &who);
}

Test(tree, are_given_level_by_level_in_the_order_of_coming)
{
    struct relay_tree tree;
    struct wire_position told;

    relay_tree_init(&tree, 16 + 16 * 16 + 1);
    for (unsigned rank = 1; rank <= 16 + 16 * 16 + 1; rank++) {
        enum position position = relay_tree_give(&tree, false, true, &told);
        unsigned above = (rank - 1) / 16;

        cr_assert_eq(position, above ? POSITION_THERE : POSITION_HERE, "rank %u", rank);
        cr_assert_eq(le32toh(told.rank), above, "rank %u sits with %u", rank, le32toh(told.rank));
        cr_assert_eq(told.relay != 0, rank <= 17, "rank %u", rank);
        take_position(&tree, &told, rank, false);
    }
    cr_assert_eq(tree.here, 16);
    cr_assert_eq(tree.expected, 0);
    relay_tree_done(&tree);
}

Test(tree, are_at_the_meeting_point_for_the_impatient_and_where_there_are_no_relays)
{
    struct relay_tree tree;
    struct wire_position told;

    relay_tree_init(&tree, 30);
    for (int i = 0; i < 16; i++)
        cr_assert_eq(relay_tree_give(&tree, false, true, &told), POSITION_HERE);
    cr_assert_eq(relay_tree_give(&tree, false, true, &told), POSITION_LATER);
    cr_assert_eq(relay_tree_give(&tree, false, false, &told), POSITION_HERE);
    relay_tree_done(&tree);
    relay_tree_init(&tree, 0); /* a relay's own */
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(relay_tree_give(&tree, false, true, &told), POSITION_HERE);
        cr_assert_eq(told.relay, 0);
    }
    relay_tree_done(&tree);
}

Test(tree, at_a_loopback_address_are_for_those_of_the_same_host)
{
    struct relay_tree tree;
    struct wire_position told, first;

    relay_tree_init(&tree, 40);
    relay_tree_give(&tree, true, true, &first);
    for (int i = 1; i < 16; i++) {
        relay_tree_give(&tree, false, true, &told);
        if (told.relay)
            relay_tree_taken(&tree, &told, &(struct wire_position){.moved = 0},
                             &(struct relay){.rank = 2});
    }
    take_position(&tree, &first, 1, true);
    cr_assert_eq(relay_tree_give(&tree, false, true, &told), POSITION_HERE, "for another host");
    cr_assert_eq(relay_tree_give(&tree, true, true, &told), POSITION_THERE, "for this host");
    cr_assert_eq(le32toh(told.rank), 1);
    relay_tree_done(&tree);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

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

static void check_right(const struct party_rank *ranks, int count)
{
    for (int i = 0; i < count; i++)
        cr_assert(ranks[i].right, "thread %d: '%s'", i, ranks[i].sentence);
}

static int files_of(pid_t pid)
{
    char path[40];
    DIR *directory;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    directory = opendir(path);
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

/* A rank in a process of its own, which can be killed. Its status is 0 if it met the others. */
static pid_t start_process(struct party_rank *rank)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    party_take_part(rank);
    _exit(rank->right ? 0 : 1);
}

/* Until process `pid` has at most (or, for a negative number, at least) so many descriptors; false:
 * it has ended. */
static bool await_files(pid_t pid, int files)
{
    int now;

    while ((now = files_of(pid)) > 0) {
        if (files >= 0 ? now <= files : now >= -files)
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

Test(tree, of_any_size_is_met_in)
{
    static const int sizes[] = {18, 33, 50, 64, 130};

    for (int i = 0; i < 10; i++) {
        int size = sizes[i / 2], before = party_files();
        struct bootstrap_place place;
        struct party_rank *ranks;

        party_place(&place, i % 2);
        ranks = party_new(&place, size, world_patience(20));
        party_run(ranks, size);
        check_right(ranks, size);
        cr_assert_eq(party_files(), before, "descriptors leaked");
        party_free(ranks);
    }
}

Test(tree, the_meeting_point_keeps_sixteen_connections)
{
    enum { SIZE = 120 };
    struct party_rank *ranks;
    int status, before = party_files();
    pid_t pid;

    for (int tcp = 0; tcp < 2; tcp++) {
        ranks = party_at(tcp, SIZE, world_patience(20));
        pid = start_process(&ranks[0]);
        party_start(ranks + 1, SIZE - 2);
        cr_assert(await_files(pid, -(before + RELAY_WIDTH)), "%d", files_of(pid));
        cr_assert(await_files(pid, before + RELAY_WIDTH + 2), "%d", files_of(pid));
        party_start(ranks + SIZE - 1, 1);
        party_join(ranks + 1, SIZE - 1);
        waitpid(pid, &status, 0);
        cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
        check_right(ranks + 1, SIZE - 1);
        party_free(ranks);
    }
}

/* Rank 1 is there first, so others wait with it. */
static pid_t start_with_a_relay(struct party_rank *ranks, int count)
{
    int before;
    pid_t pid;

    before = files_of(getpid()) - 1; /* without the directory itself */
    pid = start_process(&ranks[1]);  /* before rank 0 is there: it inherits nothing of rank 0's */
    party_start(ranks, 1);
    cr_assert(await_files(pid, -(before + 2))); /* its position, and where it listens */
    party_start(ranks + 2, count - 2);
    cr_assert(await_files(pid, -(before + 6))); /* some of the others wait with it */
    return pid;
}

Test(tree, a_relay_that_is_killed_is_named_on_every_rank)
{
    enum { SIZE = 60 };
    struct party_rank *ranks;
    char part[40];
    pid_t pid;

    for (int tcp = 0; tcp < 2; tcp++) {
        ranks = party_at(tcp, SIZE, world_patience(20));
        pid = start_with_a_relay(ranks, SIZE - 1);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        party_join(ranks, 1);
        party_join(ranks + 2, SIZE - 3);
        snprintf(part, sizeof(part), "rank 1 (pid %d on ", (int)pid);
        check_all(ranks, 1, RONDO_ERROR_PEER, part);
        check_all(ranks + 2, SIZE - 3, RONDO_ERROR_PEER, part);
        cr_assert(strstr(ranks[SIZE - 2].sentence, "went away"));
        party_free(ranks);
    }
}

Test(tree, a_rank_that_is_killed_far_from_the_meeting_point_is_named_on_every_rank)
{
    enum { SIZE = 60 };
    struct party_rank *ranks;
    int before;
    char part[40];
    pid_t both[] = {getpid(), 0}, pid;

    ranks = party_at(false, SIZE, world_patience(20));
    before = party_files();
    party_start(ranks, SIZE - 2);
    cr_assert(await_files(getpid(), -(before + 100)));
    world_await_quiet(both, 1); /* they wait; those who come now wait with one of them */
    pid = both[1] = start_process(&ranks[SIZE - 2]);
    world_await_quiet(both, 2); /* it has said who it is */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    party_join(ranks, SIZE - 2);
    snprintf(part, sizeof(part), "rank %d (pid %d on ", SIZE - 2, (int)pid);
    check_all(ranks, SIZE - 2, RONDO_ERROR_PEER, part);
    party_free(ranks);
}

Test(tree, ranks_that_never_come_are_named_on_every_rank)
{
    enum { SIZE = 60 };
    struct party_rank *ranks;
    int before = party_files();

    ranks = party_at(true, SIZE, world_patience(0.5));
    cr_assert_eq(party_run(ranks, SIZE - 2), 0);
    check_all(ranks, SIZE - 2, RONDO_ERROR_TIMEOUT, " s for ranks 58 to 59 of 60");
    cr_assert_eq(party_files(), before, "descriptors leaked");
    party_free(ranks);
}

Test(tree, a_number_claimed_twice_is_told_to_every_rank)
{
    enum { SIZE = 60 };
    struct party_rank *ranks = party_at(false, SIZE, world_patience(20));

    ranks[SIZE - 1].rank = 30;
    cr_assert_eq(party_run(ranks, SIZE), 0);
    check_all(ranks, SIZE, RONDO_ERROR_INVALID, "two ranks claimed number 30");
    party_free(ranks);
}

/* ---- Those who do not belong to it, at relays ------------------------------------------------ */

/* Relays of other jobs on this machine are knocked at, too: it does them no harm. */
static int knock_at_relays(int *fds, int room)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char line[512];
    int count = 0;

    while (file && count + 4 <= room && fgets(line, sizeof(line), file)) {
        char *at = strstr(line, "@rondo-relay-");
        char address[BOOTSTRAP_ADDRESS_MAX];

        if (!at)
            continue;
        at[strcspn(at, "\n")] = '\0';
        snprintf(address, sizeof(address), "unix:%.70s", at + 1);
        for (int i = 0; i < 4; i++)
            if (!socket_connect(address, 0, clock_seconds() + 1, &fds[count], NULL) &&
                fds[count] >= 0)
                count++;
    }
    if (file)
        fclose(file);
    return count;
}

Test(tree, strangers_at_relays_do_no_harm)
{
    enum { SIZE = 40, STRANGERS = 64 };
    struct party_rank *ranks;
    int strangers[STRANGERS], count;
    unsigned char noise[3000];
    pid_t self = getpid();

    ranks = party_at(false, SIZE, world_patience(20));
    party_start(ranks, SIZE - 1);
    while (!(count = knock_at_relays(strangers, STRANGERS)))
        poll(NULL, 0, 10);
    randombytes_buf(noise, sizeof(noise));
    for (int i = 0; i < count; i++) {
        if (i % 4 == 1)
            socket_send(strangers[i], noise, sizeof(noise), clock_seconds() + 1);
        if (i % 4 == 2)
            shutdown(strangers[i], SHUT_WR);
        if (i % 4 == 3)
            close(strangers[i]);
    }
    world_await_quiet(&self, 1); /* all have heard them */
    party_start(ranks + SIZE - 1, 1);
    party_join(ranks, SIZE);
    check_right(ranks, SIZE);
    for (int i = 0; i < count; i++)
        if (i % 4 != 3)
            close(strangers[i]);
    party_free(ranks);
}

/* Rank 1 says that others may wait at an address where nobody is. */
static void *take_position_and_mislead(void *argument)
{
    struct party_rank *me = argument;
    unsigned char blob[PARTY_BLOB], *blobs = malloc((size_t)me->size * PARTY_BLOB);
    struct connector connector = {.place = &me->place,
                                  .rank = me->rank,
                                  .size = me->size,
                                  .timeout = me->timeout,
                                  .deadline = clock_seconds() + me->timeout,
                                  .blob = blob,
                                  .blob_bytes = PARTY_BLOB,
                                  .each = PARTY_BLOB,
                                  .fd = -1,
                                  .session.secret = me->place.secret,
                                  .last = ""};
    struct wire_position position = {.address = ""};

    for (int i = 0; i < PARTY_BLOB; i++)
        blob[i] = (unsigned char)(me->rank * 31 + i);
    me->result = connector_reach(&connector);
    if (!me->result)
        me->result = connector_hand_in(&connector);
    if (!me->result)
        me->result = connector_hear(&connector, &position, blobs);
    if (!me->result)
        me->result = connector_take_position(&connector, "unix:rondo-nobody-is-here", false);
    if (!me->result)
        me->result = connector_hear(&connector, NULL, blobs);
    snprintf(me->sentence, sizeof(me->sentence), "%s", fail_sentence());
    me->right = !me->result && position.relay;
    connector_close(&connector);
    free(blobs);
    return NULL;
}

Test(tree, a_relay_that_cannot_be_reached_is_not_needed)
{
    enum { SIZE = 60 };
    struct party_rank *ranks = party_at(false, SIZE, world_patience(20));
    pid_t self = getpid();

    party_start(ranks, 1);
    pthread_create(&ranks[1].thread, NULL, take_position_and_mislead, &ranks[1]);
    world_await_quiet(&self, 1); /* it is a relay */
    party_start(ranks + 2, SIZE - 2);
    party_join(ranks, SIZE);
    check_right(ranks, SIZE);
    party_free(ranks);
}
