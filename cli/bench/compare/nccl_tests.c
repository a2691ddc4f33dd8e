/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_tests.c - output of nccl-tests becomes rows: a line has a time out of place and one in
 * place, which count as a round each.
 */
#include "cli/bench/compare/compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 13, OUT_OF_PLACE = 5, IN_PLACE = 9, WRONG_AFTER = 3 };

static bool is_number(const char *text)
{
    char *end;

    strtod(text, &end);
    return end != text && *end == 0;
}

/* The columns of a line of results: it begins with a size. */
static bool split(char *line, char *columns[COLUMNS])
{
    char *rest = NULL;
    int count = 0;

    for (char *word = strtok_r(line, " \t\n", &rest); word && count < COLUMNS;
         word = strtok_r(NULL, " \t\n", &rest))
        columns[count++] = word;
    return count == COLUMNS && is_number(columns[0]) && is_number(columns[1]);
}

/* 0, or -1: there is no memory. */
static int add_time(struct compare_run *run, const char *collective, char *const *columns,
                    int place)
{
    double us = strtod(columns[place], NULL);
    char cell[COMPARE_NAME];
    struct compare_row *row;

    if (!is_number(columns[place]) || us <= 0)
        return 0;
    snprintf(cell, sizeof(cell), "%s%s%.20s B, %.20s, %.20s, root %.20s%s", collective,
             *collective ? " " : "", columns[0], columns[2], columns[3], columns[4],
             place == IN_PLACE ? ", in place" : "");
    row = compare_row_of(run, "nccl-tests", cell);
    if (!row)
        return -1;
    row->wrong += strtoll(columns[place + WRONG_AFTER], NULL, 10);
    compare_add_round(run, row, us);
    return 0;
}

int compare_read_nccl_tests(struct compare_run *run, const char *path)
{
    FILE *file = fopen(path, "re");
    char *columns[COLUMNS], *line = NULL, *suffix;
    char collective[64] = "";
    size_t room = 0;
    int failed = file ? 0 : -1;
    bool any = false, ended = false;

    while (!failed && getline(&line, &room, file) > 0) {
        if (sscanf(line, "# Collective test starting: %63s", collective) == 1) {
            suffix = strstr(collective, "_perf");
            if (suffix)
                *suffix = 0;
        } else if (!strncmp(line, "# Avg bus bandwidth", 19)) {
            ended = true;
        } else if (*line != '#' && split(line, columns)) {
            any = true;
            ended = false; /* there may be several outputs */
            failed = add_time(run, collective, columns, OUT_OF_PLACE) ||
                             add_time(run, collective, columns, IN_PLACE)
                         ? -1
                         : 0;
        }
    }
    free(line);
    if (file)
        fclose(file);
    snprintf(run->first, sizeof(run->first), "nccl-tests");
    run->complete = run->complete && ended;
    return any ? failed : -1;
}
