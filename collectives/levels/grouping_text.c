/* SPDX-License-Identifier: BSD-3-Clause */
/* grouping_text.c - groups of ranks as people write them, and shapes to try plans on. */
#include "collectives/levels/grouping.h"

#include "base/fail.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads "A", then one of `separators` or the end; -1: it is something else. */
static int read_number(const char **text, const char *separators, char *ret_separator)
{
    char *end;
    long value;

    if (!isdigit((unsigned char)**text))
        return -1;
    value = strtol(*text, &end, 10);
    if (value > 1 << 20 || (*end && !strchr(separators, *end)))
        return -1;
    *ret_separator = *end;
    *text = *end ? end + 1 : end;
    return (int)value;
}

/* Gives each rank its name, as far as `names` (which may be NULL) has room; how many there are. */
static int read_names(const char *text, int room, int *names)
{
    char kind = 0, next = 0;
    int number = read_number(&text, "x+,*", &kind), count = 0, group = 0;

    if (kind == '*' && number > 0 && !*text) {
        for (int rank = 0; names && rank < room; rank++)
            names[rank] = rank % number;
        return 0;
    }
    if (kind == 'x') {
        int members = read_number(&text, "", &next);

        if (members < 1 || number < 1 || members > (1 << 20) / number)
            return -1;
        for (int rank = 0; names && rank < room; rank++)
            names[rank] = rank / members;
        return number * members;
    }
    for (next = kind; number >= 0; group++) {
        int ranks = kind == ',' ? 1 : number;

        if (ranks < 1 || ranks > (1 << 20) - count)
            return -1;
        for (int rank = count; names && rank < count + ranks && rank < room; rank++)
            names[rank] = kind == ',' ? number : group;
        count += ranks;
        if (!next)
            return count;
        number = read_number(&text, kind == ',' ? "," : "+", &next);
    }
    return -1;
}

int grouping_text_size(const char *text)
{
    return isdigit((unsigned char)*text) ? read_names(text, 0, NULL) : -1;
}

rondo_result grouping_parse(const char *text, int size, struct grouping **ret_grouping)
{
    int ranks = grouping_text_size(text);
    rondo_result result;
    int *names;

    if (ranks < 0)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "\"%s\" names no groups of ranks: it may be 4x2, 4+3+1, 0,1,0,1 or 2*.",
                          text);
    if (ranks && ranks != size)
        return rondo_fail(RONDO_ERROR_INVALID, "The groups \"%s\" are of %d ranks, there are %d.",
                          text, ranks, size);
    names = calloc((size_t)size, sizeof(*names));
    if (!names)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the groups of %d ranks.", size);
    read_names(text, size, names);
    result = grouping_make(size, names, ret_grouping);
    free(names);
    return result;
}

void grouping_describe(const struct grouping *grouping, char *text, size_t size)
{
    bool equal = grouping->runs && grouping->rails * grouping->groups == grouping->size;
    int count = grouping->runs ? grouping->groups : grouping->size;
    size_t length = 0;

    if (equal) {
        snprintf(text, size, "%dx%d", grouping->groups, grouping->rails);
        return;
    }
    for (int i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%d",
                                   i == 0           ? ""
                                   : grouping->runs ? "+"
                                                    : ",",
                                   grouping->runs ? grouping_members(grouping, i)
                                                  : grouping->group_of[i]);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* The name of a rank's group. */
static int shape_name(int size, int shape, int rank, unsigned *random)
{
    int begin = 0;

    switch (shape) {
    case 1:
        return rank % (size > 5 ? 3 : 2);
    case 2: /* size/2, then half of the rest ... */
        for (int left = size / 2; left > 0 && begin + left < size; left = (left + 1) / 2) {
            if (rank < begin + left)
                return begin;
            begin += left;
            if (left == 1)
                break;
        }
        return begin;
    case 3:
    case 8:
        *random = *random * 1103515245u + 12345u;
        return (int)((*random >> 16) % (unsigned)(1 + size / 3));
    case 4:
    case 7:
        return rank / 2;
    case 5:
        return 0;
    default:
        return rank;
    }
}

rondo_result grouping_shape(int size, int shape, struct grouping **ret_grouping)
{
    unsigned random = (unsigned)size;
    rondo_result result;
    int *names;

    if (shape == 0)
        return grouping_square(size, ret_grouping);
    names = calloc((size_t)size, sizeof(*names));
    if (!names)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the groups of %d ranks.", size);
    for (int rank = 0; rank < size; rank++)
        names[rank] = shape_name(size, shape, rank, &random);
    result = grouping_make(size, names, ret_grouping);
    free(names);
    if (!result && shape >= 7)
        (*ret_grouping)->cut = shape == 7 ? 16 : 2;
    return result;
}
