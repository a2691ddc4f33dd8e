/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak_judge.c - what is asked of a run.
 *
 * Whoever lives to the end is in the last communicator of some, with the same verdicts in all of
 * its rounds, and all of its members are there. Where no rank was cut off, that is one communicator
 * of all who live. A rank that was cut off may be left out, or go on with whom it can talk to; then
 * one that cannot talk to it may be left out instead, and is told so. In the agreement in which a
 * rank was cut off it may still count others that have left it out (docs/recovery.md). Nobody hangs
 * or crashes.
 */
#include "soak.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

unsigned long soak_struck, soak_left_out;

static bool has_ended_by_fate(const struct run *run, const int *statuses, int rank)
{
    return run->fates[rank].fails && WIFSIGNALED(statuses[rank]) &&
           WTERMSIG(statuses[rank]) == SIGKILL;
}

static bool was_cut(const struct run *run, int rank)
{
    return run->fates[rank].cuts &&
           atomic_load_explicit(&run->fates[rank].struck, memory_order_relaxed) > 0;
}

/* A rank that came to the end with others, or alone. */
static bool went_on(const struct run *run, int rank)
{
    return run->said[rank].done && !run->said[rank].result;
}

/* True if one was cut off in the last agreement that it made, and the other left it out there. */
static bool was_left_out(const struct run *run, int one, int other)
{
    const struct said *a = &run->said[one], *b = &run->said[other];

    return was_cut(run, one) && !(b->members >> one & 1) && a->rounds < b->rounds &&
           run->fates[one].round <= a->rounds &&
           memcmp(a->round, b->round, (size_t)a->rounds * sizeof(a->round[0])) == 0;
}

static const char *compare(const struct run *run, int a, int b)
{
    const struct said *one = &run->said[a], *other = &run->said[b];
    bool together = one->members >> b & 1 || other->members >> a & 1;

    if (!together)
        return was_cut(run, a) || was_cut(run, b) ? NULL : "it went on without another one";
    if (was_left_out(run, a, b) || was_left_out(run, b, a))
        return NULL;
    if (one->members != other->members)
        return "different communicators";
    if (one->rounds != other->rounds)
        return "different numbers of rounds";
    if (memcmp(one->round, other->round, sizeof(one->round)) != 0)
        return "different verdicts";
    return one->calls && other->calls ? NULL : "no work was done";
}

/* A rank without an error. */
static const char *judge_one(const struct run *run, const int *statuses, int rank)
{
    const char *wrong = NULL;

    for (int other = 0; other < run->size && !wrong; other++) {
        if (other == rank || has_ended_by_fate(run, statuses, other))
            continue;
        if (went_on(run, other))
            wrong = compare(run, rank, other);
        else if (run->said[rank].members >> other & 1)
            wrong = "one of its last communicator has not gone on";
    }
    return wrong;
}

/* A rank with an error that lives: it is told that it was left out, where that may be. */
static const char *judge_lost(const struct run *run, int rank)
{
    const struct said *said = &run->said[rank];
    bool cut_goes_on = false;

    if (said->wrong || !said->result)
        return said->result ? said->sentence : "it has not come to the end";
    if (was_cut(run, rank))
        return NULL;
    for (int other = 0; other < run->size; other++)
        cut_goes_on |= was_cut(run, other) && went_on(run, other);
    if (!cut_goes_on || said->result != RONDO_ERROR_PEER ||
        !strstr(said->sentence, "gone on without"))
        return said->sentence;
    soak_left_out++;
    return NULL;
}

bool soak_judge(const struct run *run, const int *statuses, uint64_t seed)
{
    bool good = true;

    for (int rank = 0; rank < run->size; rank++) {
        const struct said *said = &run->said[rank];
        const char *wrong;

        if (has_ended_by_fate(run, statuses, rank))
            continue;
        if (!WIFEXITED(statuses[rank]))
            wrong = WTERMSIG(statuses[rank]) == SIGALRM ? "it hangs" : "it crashed";
        else if (went_on(run, rank))
            wrong = judge_one(run, statuses, rank);
        else
            wrong = judge_lost(run, rank);
        if (wrong)
            printf("# seed %llu: rank %d of %d, round %d: %s\n", (unsigned long long)seed, rank,
                   run->size, said->rounds, wrong);
        soak_struck += said->faults;
        good &= !wrong;
    }
    return good;
}
