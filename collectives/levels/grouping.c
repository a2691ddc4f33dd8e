/* SPDX-License-Identifier: BSD-3-Clause */
/* grouping.c - groups of ranks, made from names. */
#include "collectives/levels/grouping.h"

#include "base/fail.h"

#include <stdlib.h>

void grouping_close(struct grouping *grouping)
{
    if (!grouping)
        return;
    free(grouping->group_of);
    free(grouping->index_of);
    free(grouping->members);
    free(grouping->begin);
    free(grouping);
}

static struct grouping *allocate(int size)
{
    struct grouping *grouping = calloc(1, sizeof(*grouping));
    size_t ranks = (size_t)size;

    if (!grouping)
        return NULL;
    grouping->size = size;
    grouping->group_of = calloc(ranks, sizeof(int));
    grouping->index_of = calloc(ranks, sizeof(int));
    grouping->members = calloc(ranks, sizeof(int));
    grouping->begin = calloc(ranks + 1, sizeof(int));
    if (grouping->group_of && grouping->index_of && grouping->members && grouping->begin)
        return grouping;
    grouping_close(grouping);
    return NULL;
}

struct named {
    int name, rank;
};

static int by_name(const void *left, const void *right)
{
    const struct named *a = left, *b = right;

    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->rank - b->rank;
}

/* Groups by their lowest rank: group_of[] first holds that rank, then the group's number. */
static void number_groups(struct grouping *grouping, struct named *named)
{
    int lowest = 0;

    qsort(named, (size_t)grouping->size, sizeof(*named), by_name);
    for (int i = 0; i < grouping->size; i++) {
        if (i == 0 || named[i].name != named[i - 1].name)
            lowest = named[i].rank;
        grouping->group_of[named[i].rank] = lowest;
    }
    for (int rank = 0; rank < grouping->size; rank++) {
        bool first = grouping->group_of[rank] == rank;

        grouping->group_of[rank] =
            first ? grouping->groups++ : grouping->group_of[grouping->group_of[rank]];
        grouping->index_of[rank] = grouping->begin[grouping->group_of[rank] + 1]++;
    }
}

static bool is_power_of_two(int number)
{
    return (number & (number - 1)) == 0;
}

static void describe(struct grouping *grouping)
{
    grouping->smallest = 0;
    for (int g = 0; g < grouping->groups; g++) {
        int members = grouping_members(grouping, g);

        if (members > grouping->rails)
            grouping->rails = members;
        if (members > 1 && (!grouping->smallest || members < grouping->smallest))
            grouping->smallest = members;
    }
    if (!grouping->smallest)
        grouping->smallest = 1;
    grouping->runs = true;
    for (int i = 0; i < grouping->size; i++)
        grouping->runs = grouping->runs && grouping->members[i] == i;
    grouping->aligned = grouping->runs && is_power_of_two(grouping_members(grouping, 0));
    for (int g = 1; g < grouping->groups; g++) {
        int members = grouping_members(grouping, g), before = grouping_members(grouping, g - 1);

        grouping->aligned = grouping->aligned &&
                            (members == before || (members < before && g == grouping->groups - 1));
    }
}

rondo_result grouping_make(int size, const int *names, struct grouping **ret_grouping)
{
    struct grouping *grouping = allocate(size);
    struct named *named = calloc((size_t)size, sizeof(*named));

    if (!grouping || !named) {
        grouping_close(grouping);
        free(named);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the groups of %d ranks.", size);
    }
    for (int rank = 0; rank < size; rank++)
        named[rank] = (struct named){names[rank], rank};
    number_groups(grouping, named);
    free(named);
    for (int g = 0; g < grouping->groups; g++)
        grouping->begin[g + 1] += grouping->begin[g];
    for (int rank = 0; rank < size; rank++)
        grouping->members[grouping->begin[grouping->group_of[rank]] + grouping->index_of[rank]] =
            rank;
    describe(grouping);
    *ret_grouping = grouping;
    return RONDO_OK;
}

rondo_result grouping_square(int size, struct grouping **ret_grouping)
{
    int *names = calloc((size_t)size, sizeof(*names));
    rondo_result result;
    int members = 1;

    if (!names)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the groups of %d ranks.", size);
    while ((long long)members * members < size)
        members *= 2;
    for (int rank = 0; rank < size; rank++)
        names[rank] = rank / members;
    result = grouping_make(size, names, ret_grouping);
    free(names);
    return result;
}
