/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grouping.h - which ranks are near each other: those of a host, or of a NUMA node.
 *
 * Groups are numbered by their lowest rank, members stand in rank order. *Rails* connect the groups
 * side by side: there are as many as the largest group has members, and each passes one member of
 * every group. Members of a smaller group serve several neighbouring rails:
 *
 *     rail        0  1  2  3          a rank's first rail is also where its own block
 *     group 0     0  1  2  3          travels when whole blocks go from group to group
 *     group 1     4  4  5  6
 *     group 2     7  7  7  7
 *
 * Everything is computed once, in time and memory proportional to the number of ranks.
 */
#ifndef RONDO_COLLECTIVES_GROUPING_H
#define RONDO_COLLECTIVES_GROUPING_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>

struct grouping {
    int size, groups;
    int rails;    /* members of the largest group */
    int smallest; /* members of the smallest group that has more than one; 1: there is none */
    bool runs;    /* every group is a run of ranks, and they follow each other */
    bool aligned; /* runs of a power of two ranks, all alike but the last, which may be shorter */
    int *group_of, *index_of; /* [rank]: its group, and its place in there */
    int *members;             /* ranks, group by group */
    int *begin;               /* [group]: its first place in `members`; one more at the end */
    /* An all_reduce sends what it sends to a rank inside of its group in so many messages, and
     * those from group to group can be as many times longer; 0 or 1: in one. */
    int cut;
};

/* `names`: any numbers, equal for ranks of one group. */
rondo_result grouping_make(int size, const int *names, struct grouping **ret_grouping);
/* Makes runs of the least power of two whose square holds all, where nothing is known of ranks. */
rondo_result grouping_square(int size, struct grouping **ret_grouping);
/*
 * For people: "4x2" is four groups of two, "4+3+1" groups of these sizes, "0,1,0,1" the group of
 * each rank, "2*" two groups that are dealt ranks in turn. Must fit `size`.
 */
rondo_result grouping_parse(const char *text, int size, struct grouping **ret_grouping);
/* Returns how many ranks such a text speaks of; 0: any number, -1: it is no such text. */
int grouping_text_size(const char *text);
/* Writes such a text, for logs; it is cut where the room ends. */
void grouping_describe(const struct grouping *grouping, char *text, size_t size);
/*
 * Shapes on which plans are proved: square, dealt in turn, sizes that halve, of random sizes and
 * places, pairs, everybody together, everybody alone, pairs with a cut, random ones with a cut.
 */
enum { GROUPING_SHAPES = 9 };
rondo_result grouping_shape(int size, int shape, struct grouping **ret_grouping);
void grouping_close(struct grouping *grouping);

/* More than one group, and more than one rank in some: otherwise there is only one level. */
static inline bool grouping_has_levels(const struct grouping *grouping)
{
    return grouping && grouping->groups > 1 && grouping->rails > 1;
}

static inline int grouping_members(const struct grouping *grouping, int group)
{
    return grouping->begin[group + 1] - grouping->begin[group];
}

static inline int grouping_rank(const struct grouping *grouping, int group, int index)
{
    return grouping->members[grouping->begin[group] + index];
}

/* The rank that serves a rail in a group. */
static inline int grouping_on_rail(const struct grouping *grouping, int group, int rail)
{
    long long members = grouping_members(grouping, group);

    return grouping_rank(grouping, group, (int)(rail * members / grouping->rails));
}

/* The first rail of a group's member; that of the member behind the last is the number of rails. */
static inline int grouping_first_rail(const struct grouping *grouping, int group, int index)
{
    long long members = grouping_members(grouping, group);

    return (int)((index * (long long)grouping->rails + members - 1) / members);
}

/* The rank of a group whose first rail this is, -1: the group has no rank for it alone. */
static inline int grouping_owner(const struct grouping *grouping, int group, int rail)
{
    int rank = grouping_on_rail(grouping, group, rail);

    return grouping_first_rail(grouping, group, grouping->index_of[rank]) == rail ? rank : -1;
}

/* The most rails that any rank serves which is not alone in its group. */
static inline int grouping_most_rails(const struct grouping *grouping)
{
    return (grouping->rails + grouping->smallest - 1) / grouping->smallest;
}

#endif
