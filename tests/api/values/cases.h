/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases.h - which calls the matrix makes.
 *
 * Every form (collective x algorithm) runs at every number of ranks as threads and as processes at
 * least once. What else varies (type, operation, count, ...) is chosen so that every pair of levels
 * of any two factors that can occur together does occur: most bugs need two things to coincide, few
 * need three. The choice depends on a seed only.
 */
#ifndef RONDO_TESTS_API_VALUES_CASES_H
#define RONDO_TESTS_API_VALUES_CASES_H

#include "rondo/rondo.h"

#include <stdbool.h>

enum { CASES_RANKS = 17, CASES_FORMS_MAX = 128, CASES_MAX = 16384 };

/* Operations of the matrix: the built-in ones, then the pre-multiplied sum. */
enum { CASES_PREMUL = RONDO_OPS, CASES_OPS };

enum case_memory { CASE_PLAIN, CASE_SHARED, CASE_EVEN_SHARED, CASE_ODD_SHARED, CASE_MEMORIES };
enum case_root { CASE_FIRST, CASE_MIDDLE, CASE_LAST, CASE_ROOTS };

/* Counts by what they are in relation to n ranks. */
enum case_count {
    COUNT_0,
    COUNT_1,
    COUNT_2,
    COUNT_BELOW_N,
    COUNT_N,
    COUNT_ABOVE_N,
    COUNT_17,
    COUNT_1000,
    COUNT_4099,
    COUNT_SEGMENTS, /* more than fits a slot at once */
    CASE_COUNTS
};

struct form {
    rondo_collective collective;
    const char *algorithm;
};

/* A call is made in one of these ways. */
enum case_way {
    CASE_CALLED,
    CASE_POSTED,      /* and waited for */
    CASE_POSTED_NEXT, /* and finished by the next call */
    CASE_POSTED_LEFT, /* the same, and nobody asks for it */
    CASE_WAYS
};

struct test_case {
    struct form form;
    enum case_way way;
    int form_index;
    int size;
    bool processes;
    rondo_type type;
    int op;
    enum case_count count;
    bool small_slots, in_place, unaligned;
    enum case_memory memory;
    enum case_root root;
};

struct case_list {
    int forms, count;
    struct form form[CASES_FORMS_MAX];
    struct test_case at[CASES_MAX];
    int pairs_missing; /* that could occur, but don't: 0 if the choice is complete */
};

bool cases_reduces(rondo_collective collective);
bool cases_has_root(rondo_collective collective);
size_t cases_count(const struct test_case *test);
int cases_root(const struct test_case *test);
void cases_describe(const struct test_case *test, char *text, size_t size);

/* list->form and list->forms are given; the rest is filled. */
void cases_choose(struct case_list *list, unsigned long seed);

#endif
