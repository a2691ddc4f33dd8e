/* SPDX-License-Identifier: BSD-3-Clause */
/* cases.c - a choice of calls that covers all pairs of levels, see cases.h. */
#include "tests/api/values/cases.h"

#include "tests/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum factor {
    FORM,
    SIZE,
    PROCESSES,
    TYPE,
    OP,
    COUNT,
    SMALL_SLOTS,
    IN_PLACE,
    UNALIGNED,
    MEMORY,
    ROOT,
    FACTORS
};
enum { CANDIDATES = 16, TOP_UP_TRIES = 200000 };

struct search {
    int levels[FACTORS];
    uint64_t seed, drawn;
    bool seen[FACTORS][FACTORS][CASES_FORMS_MAX][CASES_FORMS_MAX];
};

bool cases_reduces(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
           collective == RONDO_REDUCE_SCATTER;
}

bool cases_has_root(rondo_collective collective)
{
    return collective == RONDO_REDUCE || collective == RONDO_BROADCAST ||
           collective == RONDO_GATHER || collective == RONDO_SCATTER;
}

size_t cases_count(const struct test_case *test)
{
    size_t n = (size_t)test->size;
    size_t counts[CASE_COUNTS] = {0, 1, 2, n - 1, n, n + 1, 17, 1000, 4099, 0};

    /* Small slots make many segments of few elements. */
    counts[COUNT_SEGMENTS] = test->small_slots ? 9001 : n <= 4 ? 150001 : 20011;
    return counts[test->count];
}

int cases_root(const struct test_case *test)
{
    int roots[CASE_ROOTS] = {0, test->size / 2, test->size - 1};

    return roots[test->root];
}

void cases_describe(const struct test_case *test, char *text, size_t size)
{
    static const char *const memory[] = {"plain", "shared", "even ranks shared",
                                         "odd ranks shared"};
    bool reduces = cases_reduces(test->form.collective);
    const char *op = test->op == CASES_PREMUL ? "premul_sum" : rondo_op_name(test->op);

    snprintf(text, size, "%s by %s, %d %s, %zu %s, %s, root %d, %s memory%s%s%s",
             rondo_collective_name(test->form.collective), test->form.algorithm, test->size,
             test->processes ? "processes" : "threads", cases_count(test),
             rondo_type_name(test->type), reduces ? op : "moved", cases_root(test),
             memory[test->memory], test->small_slots ? ", small slots" : "",
             test->in_place ? ", in place" : "", test->unaligned ? ", unaligned" : "");
}

/* ---- Levels ---------------------------------------------------------------------------------- */

static int draw(struct search *search, int below)
{
    return (int)(world_hash(search->seed, search->drawn++) % (uint64_t)below);
}

/* True if this factor matters to a call of that collective; then its pairs count. */
static bool matters(rondo_collective collective, int factor)
{
    if (factor == OP)
        return cases_reduces(collective);
    if (factor == ROOT)
        return cases_has_root(collective);
    if (collective == RONDO_BARRIER)
        return factor == FORM || factor == SIZE || factor == PROCESSES;
    return true;
}

static bool is_defined(const int level[FACTORS])
{
    return !(level[OP] >= RONDO_BAND && level[OP] <= RONDO_BXOR &&
             world_is_float((rondo_type)level[TYPE]));
}

static int count_new_pairs(const struct search *search, const struct case_list *list,
                           const int level[FACTORS])
{
    rondo_collective collective = list->form[level[FORM]].collective;
    int count = 0;

    for (int a = 0; a < FACTORS; a++)
        for (int b = a + 1; b < FACTORS; b++)
            if (matters(collective, a) && matters(collective, b))
                count += !search->seen[a][b][level[a]][level[b]];
    return count;
}

static void take(struct search *search, struct case_list *list, const int level[FACTORS])
{
    struct form form = list->form[level[FORM]];

    for (int a = 0; a < FACTORS; a++)
        for (int b = a + 1; b < FACTORS; b++)
            if (matters(form.collective, a) && matters(form.collective, b))
                search->seen[a][b][level[a]][level[b]] = true;
    if (list->count == CASES_MAX) {
        fprintf(stderr, "cases: more than %d cases\n", CASES_MAX);
        exit(1);
    }
    list->at[list->count++] = (struct test_case){
        .form = form,
        .form_index = level[FORM],
        .size = level[SIZE] + 1,
        .processes = level[PROCESSES],
        .type = (rondo_type)level[TYPE],
        .op = level[OP],
        .count = (enum case_count)level[COUNT],
        .small_slots = level[SMALL_SLOTS],
        .in_place = level[IN_PLACE],
        .unaligned = level[UNALIGNED],
        .memory = (enum case_memory)level[MEMORY],
        .root = (enum case_root)level[ROOT],
    };
}

/* Fill the factors after the first `fixed` ones, best of a few random tries. */
static void choose_rest(struct search *search, struct case_list *list, int level[FACTORS],
                        int fixed)
{
    int best[FACTORS], most = -1;

    for (int i = 0; i < CANDIDATES; i++) {
        int count;

        for (int f = fixed; f < FACTORS; f++)
            level[f] = draw(search, search->levels[f]);
        count = is_defined(level) ? count_new_pairs(search, list, level) : -1;
        if (count > most) {
            most = count;
            memcpy(best, level, sizeof(best));
        }
    }
    if (most >= 0)
        take(search, list, best);
}

/* True if these two levels can occur together, whatever the others are. */
static bool can_pair(const struct search *search, const struct case_list *list, int a, int la,
                     int b, int lb, int level[FACTORS])
{
    for (int form = 0; form < search->levels[FORM]; form++) {
        memset(level, 0, FACTORS * sizeof(*level));
        level[FORM] = form;
        level[a] = la;
        level[b] = lb;
        if (a != OP && b != OP)
            level[OP] = RONDO_SUM;
        if (level[FORM] != form)
            continue;
        if (matters(list->form[form].collective, a) && matters(list->form[form].collective, b) &&
            is_defined(level))
            return true;
    }
    return false;
}

/* Add a case for a pair that has none yet; its other factors are random. */
static void cover_pair(struct search *search, struct case_list *list, int a, int la, int b, int lb)
{
    int level[FACTORS];

    for (int i = 0; i < TOP_UP_TRIES; i++) {
        rondo_collective collective;

        for (int f = 0; f < FACTORS; f++)
            level[f] = draw(search, search->levels[f]);
        level[a] = la;
        level[b] = lb;
        collective = list->form[level[FORM]].collective;
        if (matters(collective, a) && matters(collective, b) && is_defined(level)) {
            take(search, list, level);
            return;
        }
    }
    list->pairs_missing++;
}

static void cover_all_pairs(struct search *search, struct case_list *list)
{
    int level[FACTORS];

    for (int a = 0; a < FACTORS; a++)
        for (int b = a + 1; b < FACTORS; b++)
            for (int la = 0; la < search->levels[a]; la++)
                for (int lb = 0; lb < search->levels[b]; lb++)
                    if (!search->seen[a][b][la][lb] && can_pair(search, list, a, la, b, lb, level))
                        cover_pair(search, list, a, la, b, lb);
}

void cases_choose(struct case_list *list, unsigned long seed)
{
    struct search *search = calloc(1, sizeof(*search));
    int levels[FACTORS] = {list->forms, CASES_RANKS, 2, RONDO_TYPES,   CASES_OPS, CASE_COUNTS,
                           2,           2,           2, CASE_MEMORIES, CASE_ROOTS};

    if (!search)
        exit(1);
    memcpy(search->levels, levels, sizeof(levels));
    search->seed = seed;
    list->count = list->pairs_missing = 0;
    for (int form = 0; form < list->forms; form++)
        for (int size = 0; size < CASES_RANKS; size++)
            for (int processes = 0; processes < 2; processes++) {
                int level[FACTORS] = {form, size, processes};

                choose_rest(search, list, level, PROCESSES + 1);
            }
    cover_all_pairs(search, list);
    free(search);
}
