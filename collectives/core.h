/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - a power of two of ranks out of any number, for algorithms that pair ranks bit by bit.
 *
 * With `extra` ranks too many, the first 2 * extra ranks form pairs of neighbours. The even one,
 * the host, takes in the share of the odd one, its guest, before, and hands it the result after:
 *
 *     ranks     0 1   2 3   4   5        extra = 2, core of 4
 *     members   0     1     2   3        member 0 speaks for ranks 0 and 1, member 1 for 2 and 3
 *
 * So a member always speaks for a run of ranks, and a higher member for a higher run.
 */
#ifndef RONDO_COLLECTIVES_CORE_H
#define RONDO_COLLECTIVES_CORE_H

#include "plan/plan.h"

struct core {
    int members; /* the largest power of two that is not above the size */
    int extra;   /* ranks too many */
    int member;  /* who I am, -1: a guest */
    int guest;   /* the rank that I speak for besides myself, -1: none */
    int host;    /* the rank that speaks for me; only if I am a guest */
};

static inline int core_members(int size)
{
    int members = 1;

    while (members <= size / 2)
        members *= 2;
    return members;
}

static inline struct core core_of(const struct plan *plan)
{
    int rank = plan->rank;
    struct core core = {.members = core_members(plan->size), .guest = -1, .host = -1};

    core.extra = plan->size - core.members;
    core.member = rank - core.extra;
    if (rank < 2 * core.extra) {
        core.member = rank % 2 ? -1 : rank / 2;
        core.host = rank - 1;
        core.guest = rank % 2 ? -1 : rank + 1;
    }
    return core;
}

/* The member that speaks for a rank. */
static inline int core_speaker(const struct core *core, int rank)
{
    return rank < 2 * core->extra ? rank / 2 : rank - core->extra;
}

/* The rank of a member. */
static inline int core_rank(const struct core *core, int member)
{
    return member < core->extra ? 2 * member : member + core->extra;
}

#endif
