/* SPDX-License-Identifier: BSD-3-Clause */
/* value.c - symbols: see verify/value.h. */
#include "plan/verify/value.h"

#include "base/range.h"

#include <stdlib.h>
#include <string.h>

bool value_table_init(struct value_table *table, int ranks, uint32_t positions)
{
    memset(table, 0, sizeof(*table));
    table->ranks = ranks;
    table->positions = positions;
    table->leaves = (uint32_t)ranks * positions;
    table->words = ((uint32_t)ranks + 63) / 64;
    table->slots = 1024;
    table->index = calloc(table->slots, sizeof(*table->index));
    return table->index;
}

void value_table_done(struct value_table *table)
{
    free(table->nodes);
    free(table->sets);
    free(table->index);
}

verify_value value_leaf(const struct value_table *table, int rank, uint32_t position)
{
    uint32_t expression = 1 + (uint32_t)rank * table->positions + position;

    return expression << VALUE_BITS | VALUE_LEAF_BITS;
}

bool value_is_leaf(const struct value_table *table, verify_value value)
{
    return value_expression(value) <= table->leaves;
}

#define INSIDE (UINT32_C(1) << 31) /* marks `right` of a sum that a step does not deliver */

static int leaf_rank(const struct value_table *table, uint32_t expression)
{
    return (int)((expression - 1) / table->positions);
}

static const struct value_node *node_of(const struct value_table *table, uint32_t expression)
{
    return &table->nodes[expression - table->leaves - 1];
}

static uint64_t *set_of(const struct value_table *table, uint32_t expression)
{
    return table->sets + (size_t)(expression - table->leaves - 1) * table->words;
}

static void describe(const struct value_table *table, uint32_t expression,
                     struct value_node *ret_node)
{
    if (expression > table->leaves) {
        *ret_node = *node_of(table, expression);
        return;
    }
    ret_node->left = ret_node->right = 0;
    ret_node->low = leaf_rank(table, expression);
    ret_node->high = ret_node->low + 1;
    ret_node->count = 1;
    ret_node->position = (expression - 1) % table->positions;
}

void value_describe(const struct value_table *table, verify_value value,
                    struct value_node *ret_node)
{
    describe(table, value_expression(value), ret_node);
}

static bool has_rank(const struct value_table *table, uint32_t expression, int rank)
{
    if (expression <= table->leaves)
        return leaf_rank(table, expression) == rank;
    return set_of(table, expression)[rank / 64] >> (rank % 64) & 1;
}

bool value_has_rank(const struct value_table *table, verify_value value, int rank)
{
    return value != VALUE_NONE && has_rank(table, value_expression(value), rank);
}

static bool sets_meet(const struct value_table *table, uint32_t left, uint32_t right)
{
    if (left <= table->leaves)
        return has_rank(table, right, leaf_rank(table, left));
    if (right <= table->leaves)
        return has_rank(table, left, leaf_rank(table, right));
    for (uint32_t i = 0; i < table->words; i++)
        if (set_of(table, left)[i] & set_of(table, right)[i])
            return true;
    return false;
}

static void set_add(const struct value_table *table, uint64_t *set, uint32_t expression)
{
    if (expression <= table->leaves) {
        int rank = leaf_rank(table, expression);

        set[rank / 64] |= UINT64_C(1) << (rank % 64);
        return;
    }
    for (uint32_t i = 0; i < table->words; i++)
        set[i] |= set_of(table, expression)[i];
}

static uint32_t hash_of(uint32_t left, uint32_t right)
{
    uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);

    return (uint32_t)(key >> 32);
}

/* Finds the sum of `left` and `right` in the hash table, or the free place for it. */
static uint32_t *find(const struct value_table *table, uint32_t left, uint32_t right)
{
    for (uint32_t at = hash_of(left, right);; at++) {
        uint32_t *entry = &table->index[at & (table->slots - 1)];

        if (!*entry ||
            (node_of(table, *entry)->left == left && node_of(table, *entry)->right == right))
            return entry;
    }
}

static bool grow_nodes(struct value_table *table)
{
    uint32_t room = table->room ? 2 * table->room : 256;
    struct value_node *nodes = realloc(table->nodes, room * sizeof(*nodes));
    uint64_t *sets;

    if (!nodes)
        return false;
    table->nodes = nodes;
    sets = realloc(table->sets, (size_t)room * table->words * sizeof(*sets));
    if (!sets)
        return false;
    table->sets = sets;
    table->room = room;
    return true;
}

static bool grow_index(struct value_table *table)
{
    uint32_t *larger = calloc(2 * (size_t)table->slots, sizeof(*larger));

    if (!larger)
        return false;
    free(table->index);
    table->index = larger;
    table->slots *= 2;
    for (uint32_t i = 0; i < table->count; i++)
        *find(table, table->nodes[i].left, table->nodes[i].right) = table->leaves + 1 + i;
    return true;
}

/* The expression for the sum of two, made if it is new; 0: out of memory. `right` may be marked. */
static uint32_t intern(struct value_table *table, uint32_t left, uint32_t right)
{
    uint32_t *entry = find(table, left, right);
    struct value_node a, b, *node;
    uint32_t expression;

    if (*entry)
        return *entry;
    if (table->count == table->room && !grow_nodes(table))
        return 0;
    if (2 * table->count >= table->slots && !grow_index(table))
        return 0;
    expression = table->leaves + 1 + table->count;
    if (expression >= UINT32_C(1) << (32 - VALUE_BITS))
        return 0;
    describe(table, left, &a);
    describe(table, right & ~INSIDE, &b);
    node = &table->nodes[table->count++];
    *node = (struct value_node){.left = left,
                                .right = right,
                                .position = a.position,
                                .low = a.low < b.low ? a.low : b.low,
                                .high = a.high > b.high ? a.high : b.high,
                                .count = a.count + b.count};
    memset(set_of(table, expression), 0, table->words * sizeof(*table->sets));
    set_add(table, set_of(table, expression), left);
    set_add(table, set_of(table, expression), right & ~INSIDE);
    *find(table, left, right) = expression;
    return expression;
}

/* left + right; `mark` is INSIDE or 0. */
static enum value_error add(struct value_table *table, verify_value left, verify_value right,
                            uint32_t mark, verify_value *ret_sum)
{
    uint32_t a = value_expression(left), b = value_expression(right), sum, bits = 0;
    struct value_node of_a, of_b;

    if ((left | right) & VALUE_FINISHED)
        return VALUE_IS_FINISHED;
    describe(table, a, &of_a);
    describe(table, b, &of_b);
    if (of_a.position != of_b.position)
        return VALUE_POSITION;
    if (sets_meet(table, a, b))
        return VALUE_TWICE;
    sum = a < b ? intern(table, a, b | mark) : intern(table, b, a | mark);
    if (!sum)
        return VALUE_NO_MEMORY;
    /* An ordered sum has no gaps, so its ranks are exactly low .. high - 1. */
    if ((left & right & VALUE_ORDERED) && of_a.high == of_b.low)
        bits |= VALUE_ORDERED;
    if (bits && (left & right & VALUE_BALANCED) &&
        of_a.count == range_split(of_a.count + of_b.count))
        bits |= VALUE_BALANCED;
    *ret_sum = sum << VALUE_BITS | bits;
    return VALUE_GOOD;
}

static enum value_error add_balanced(struct value_table *table, const verify_value *values,
                                     int count, uint32_t mark, verify_value *ret_sum)
{
    enum value_error error;
    verify_value left, right;
    int split;

    if (count == 1) {
        *ret_sum = values[0];
        return VALUE_GOOD;
    }
    split = range_split(count);
    error = add_balanced(table, values, split, INSIDE, &left);
    if (error)
        return error;
    error = add_balanced(table, values + split, count - split, INSIDE, &right);
    return error ? error : add(table, left, right, mark, ret_sum);
}

enum value_error value_reduce(struct value_table *table, const verify_value *values, int count,
                              bool balanced, verify_value *ret_sum)
{
    enum value_error error = VALUE_GOOD;
    verify_value sum = values[0];
    bool single = true;

    if (count == 1) {
        *ret_sum = values[0];
        return VALUE_GOOD;
    }
    for (int i = 0; i < count; i++)
        single = single && value_is_leaf(table, values[i]);
    if (balanced)
        error = add_balanced(table, values, count, 0, &sum);
    else
        for (int i = 1; i < count && !error; i++)
            error = add(table, sum, values[i], i + 1 < count ? INSIDE : 0, &sum);
    if (error)
        return error;
    *ret_sum = single ? sum | VALUE_SINGLE : sum;
    return VALUE_GOOD;
}
