/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress_bootstrap.c - many bootstraps with ranks as threads, without Criterion, for
 * ThreadSanitizer.
 *
 * Good jobs over both kinds of sockets, jobs with a number claimed twice, jobs by unique id,
 * several at once. Exits with 1 and a sentence if any of them ends differently than it must.
 */
#include "tests/comm/rendezvous/party.h"

#include <stdio.h>
#include <string.h>

static int fail(const char *what, const struct party_rank *ranks, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s: thread %d: result %d '%s'\n", what, i, ranks[i].result,
                ranks[i].sentence);
    return 1;
}

static int meet(int size, bool tcp)
{
    struct party_rank *ranks;
    int bad = 0;

    ranks = party_at(tcp, size, 60);
    if (party_run(ranks, size) != size)
        bad = fail("a good job", ranks, size);
    party_free(ranks);
    return bad;
}

static int collide(void)
{
    struct party_rank *ranks;
    int bad = 0;

    ranks = party_at(false, 5, 60);
    ranks[4].rank = 2;
    party_run(ranks, 5);
    for (int i = 0; i < 5; i++)
        bad |= !strstr(ranks[i].sentence, "two ranks claimed number 2");
    if (bad)
        fail("a number claimed twice", ranks, 5);
    party_free(ranks);
    return bad;
}

enum { IDS = 3, RANKS = 4 };

static int meet_by_ids(void)
{
    struct party_rank *ranks[IDS];
    int bad = 0;

    for (int i = 0; i < IDS; i++) {
        struct bootstrap_place place;
        rondo_unique_id id;

        if (bootstrap_id_create(&id) || bootstrap_id_read(&id, &place)) {
            fprintf(stderr, "%s\n", fail_sentence());
            return 1;
        }
        ranks[i] = party_new(&place, RANKS, 60);
        for (int r = 0; r < RANKS; r++)
            ranks[i][r].serve = false;
        party_start(ranks[i], RANKS);
    }
    for (int i = 0; i < IDS; i++) {
        party_join(ranks[i], RANKS);
        for (int r = 0; r < RANKS; r++)
            bad |= !ranks[i][r].right;
        if (bad)
            fail("a job by id", ranks[i], RANKS);
        party_free(ranks[i]);
    }
    return bad;
}

int main(void)
{
    int bad = 0;

    for (int round = 0; round < 5 && !bad; round++)
        bad = meet(2 + 12 * round, round % 2) || meet_by_ids() || collide();
    printf("bootstrap under stress: %s\n", bad ? "failed" : "good");
    return bad;
}
