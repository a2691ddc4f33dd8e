/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.c - what somebody meant who wrote a name that there is none of. */
#include "cli/common/nearest.h"

#include <stddef.h>
#include <string.h>

enum { LETTERS_MAX = 63 };

static int least(int a, int b, int c)
{
    int least = a < b ? a : b;

    return least < c ? least : c;
}

/* Counts letters to insert, remove or replace. */
static int edits_between(const char *a, const char *b)
{
    int row[LETTERS_MAX + 1];
    int columns = (int)strlen(b);

    if (columns > LETTERS_MAX)
        return LETTERS_MAX;
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[columns];
}

const char *nearest_name(const char *word, const char *(*name)(int i))
{
    const char *nearest = NULL;
    int fewest = (int)strlen(word) / 2 + 1;

    for (int i = 0; name(i); i++) {
        int edits = edits_between(word, name(i));

        if (edits < fewest) {
            nearest = name(i);
            fewest = edits;
        }
    }
    return nearest;
}
