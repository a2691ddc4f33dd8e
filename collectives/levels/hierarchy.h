/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hierarchy.h - what the forms in two levels share: a rank's place in both, and inner plans over
 * its group and over its rails (grouping.h).
 */
#ifndef RONDO_COLLECTIVES_HIERARCHY_H
#define RONDO_COLLECTIVES_HIERARCHY_H

#include "collectives/levels/compose.h"
#include "collectives/levels/grouping.h"

/* Inner plans by name: over the members of a group, and over the ranks of a rail. */
struct recipe {
    const struct algorithm *inside, *across;
    bool reaches; /* both touch memory of peers: partial sums are where these can reach them */
    bool flows;   /* both are `direct`, whose programs take turns segment by segment */
    /* `beyond` takes its place in more groups than `groups`; NULL: it serves any number of them. */
    const struct recipe *beyond;
    int groups;
};

/* The recipe for so many groups. */
static inline const struct recipe *recipe_for(const struct recipe *recipe, int groups)
{
    return recipe->beyond && groups > recipe->groups ? recipe->beyond : recipe;
}

struct levels {
    struct plan *plan;
    const struct grouping *groups;
    const struct recipe *recipe;
    int group, index; /* mine */
    int members;      /* of my group */
    int count;        /* of groups */
    int rail, end;    /* my rails: rail .. end - 1 */
    int root_group;   /* of the root */
    bool inside;      /* there is something to do inside: my group has others */
    bool across;      /* there are other groups */
};

struct levels levels_of(struct plan *plan); /* with the recipe of the plan */

/* An inner plan over my group, or over one of my rails; its places are still to be named. */
struct inner levels_inside(const struct levels *levels, rondo_collective collective, int channel);
struct inner levels_across(const struct levels *levels, rondo_collective collective, int channel,
                           int rail);

/*
 * The vector as one slice per rail, each of `parts` atoms: the next block of `places` is the slices
 * that a member of my group owns.
 */
void levels_add_slices(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                       int member, int parts);
/* The next block begins with this atom, and its atoms are those that follow. */
void levels_add_atom(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                     int atom);

/* The forms, of any recipe. */
void hierarchy_all_reduce(struct plan *plan);
void hierarchy_reduce(struct plan *plan);
void hierarchy_broadcast(struct plan *plan);
void hierarchy_all_gather(struct plan *plan);
void hierarchy_reduce_scatter(struct plan *plan);
void hierarchy_all_to_all(struct plan *plan);
void hierarchy_gather(struct plan *plan);
void hierarchy_scatter(struct plan *plan);

#endif
