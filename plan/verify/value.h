/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value.h - what one atom of memory holds, as a symbol: which ranks' inputs are summed in
 * it, and how.
 *
 * A value is an expression and six bits in 32 bits. An expression is a leaf (one atom of one
 * rank's input) or the sum of two; equal sums have equal numbers (each pair is stored once), so
 * comparing is one compare of integers. Sums are stored without regard to the order of the two
 * sides, as floating-point sums commute (they do not associate); whether the sides were in rank
 * order is told by VALUE_ORDERED. Sums inside of a step are not rounded to the element type, so
 * they differ from those that steps deliver. The set of ranks of a sum is exact, a bit per rank.
 */
#ifndef RONDO_PLAN_VERIFY_VALUE_H
#define RONDO_PLAN_VERIFY_VALUE_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t verify_value; /* expression << VALUE_BITS | bits */

enum {
    VALUE_NONE = 0, /* nobody has written this */
    VALUE_RAW = 1,  /* as the user wrote it: still to be prepared (a pre-multiplied sum scales) */
    VALUE_FINISHED = 2,  /* went through PLAN_FINISH */
    VALUE_SINGLE = 4,    /* a leaf, or the result of one reduce step over leaves */
    VALUE_ORDERED = 8,   /* every sum in it has lower ranks on the left, without gaps */
    VALUE_BALANCED = 16, /* it is the balanced tree over its ranks */
    VALUE_LATE = 32,     /* finished by a copy, so rounded once more than in a reduce step */
    VALUE_BITS = 6,
    VALUE_LEAF_BITS = VALUE_SINGLE | VALUE_ORDERED | VALUE_BALANCED,
};

struct value_node {
    uint32_t left,
        right; /* expressions, the smaller number first; `right` is marked inside of a step */
    uint32_t position; /* block * parts + atom, of every leaf in it */
    int32_t low, high; /* lowest rank, highest rank + 1 */
    int32_t count;     /* ranks in it */
};

struct value_table {
    int ranks;
    uint32_t positions; /* per rank */
    uint32_t leaves;    /* expressions 1 .. leaves are leaves, they take no memory */
    uint32_t words;     /* of a set */
    struct value_node *nodes;
    uint64_t *sets;
    uint32_t count, room; /* of nodes */
    uint32_t *index;      /* hash table of expressions, 0 is free */
    uint32_t slots;
};

enum value_error { VALUE_GOOD, VALUE_TWICE, VALUE_POSITION, VALUE_IS_FINISHED, VALUE_NO_MEMORY };

bool value_table_init(struct value_table *table, int ranks, uint32_t positions);
void value_table_done(struct value_table *table);

verify_value value_leaf(const struct value_table *table, int rank, uint32_t position);
/* One reduce step over `count` values; balanced or from left to right. */
enum value_error value_reduce(struct value_table *table, const verify_value *values, int count,
                              bool balanced, verify_value *ret_sum);

static inline uint32_t value_expression(verify_value value)
{
    return value >> VALUE_BITS;
}
bool value_is_leaf(const struct value_table *table, verify_value value);
void value_describe(const struct value_table *table, verify_value value,
                    struct value_node *ret_node);
bool value_has_rank(const struct value_table *table, verify_value value, int rank);

#endif
