/* SPDX-License-Identifier: BSD-3-Clause */
/* intervals.c - the treap: recursion as deep as the tree, which is O(log n) expected. */
#include "transport/memory/intervals.h"

#include <stddef.h>

static void update(struct interval *node)
{
    node->reach = node->end;
    if (node->left && node->left->reach > node->reach)
        node->reach = node->left->reach;
    if (node->right && node->right->reach > node->reach)
        node->reach = node->right->reach;
}

/* Where equal beginnings are, addresses of nodes decide, so that each node has one place. */
static bool before(const struct interval *a, const struct interval *b)
{
    return a->begin != b->begin ? a->begin < b->begin : (uintptr_t)a < (uintptr_t)b;
}

/* All of `left` is before all of `right`. */
static struct interval *join(struct interval *left, struct interval *right)
{
    struct interval *top;

    if (!left || !right)
        return left ? left : right;
    if (left->priority > right->priority) {
        left->right = join(left->right, right);
        top = left;
    } else {
        right->left = join(left, right->left);
        top = right;
    }
    update(top);
    return top;
}

/* Split a tree into what is before `at`, and the rest. */
static void split(struct interval *node, const struct interval *at, struct interval **ret_left,
                  struct interval **ret_right)
{
    if (!node) {
        *ret_left = *ret_right = NULL;
        return;
    }
    if (before(node, at)) {
        split(node->right, at, &node->right, ret_right);
        *ret_left = node;
    } else {
        split(node->left, at, ret_left, &node->left);
        *ret_right = node;
    }
    update(node);
}

static struct interval *insert(struct interval *node, struct interval *added)
{
    if (!node || added->priority > node->priority) {
        split(node, added, &added->left, &added->right);
        update(added);
        return added;
    }
    if (before(added, node))
        node->left = insert(node->left, added);
    else
        node->right = insert(node->right, added);
    update(node);
    return node;
}

static struct interval *without(struct interval *node, const struct interval *gone)
{
    if (node == gone)
        return join(node->left, node->right);
    if (before(gone, node))
        node->left = without(node->left, gone);
    else
        node->right = without(node->right, gone);
    update(node);
    return node;
}

void intervals_add(struct intervals *set, struct interval *interval)
{
    /* splitmix64: a sequence without a period that addresses could meet. */
    uint64_t bits = (set->seed += 0x9e3779b97f4a7c15u);

    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    interval->priority = bits ^ bits >> 31;
    interval->left = interval->right = NULL;
    set->root = insert(set->root, interval);
}

void intervals_remove(struct intervals *set, struct interval *interval)
{
    set->root = without(set->root, interval);
}

struct holding {
    uint64_t begin, end;
    bool (*fits)(const struct interval *interval, const void *context);
    const void *context;
};

static struct interval *holding(struct interval *node, const struct holding *wish)
{
    struct interval *found;

    if (!node || node->reach < wish->end)
        return NULL;
    if (node->begin > wish->begin)
        return holding(node->left, wish);
    if (node->end >= wish->end && (!wish->fits || wish->fits(node, wish->context)))
        return node;
    found = holding(node->left, wish);
    return found ? found : holding(node->right, wish);
}

struct interval *intervals_holding(const struct intervals *set, uint64_t begin, uint64_t end,
                                   bool (*fits)(const struct interval *interval,
                                                const void *context),
                                   const void *context)
{
    return holding(set->root, &(struct holding){begin, end, fits, context});
}

struct interval *intervals_touching(const struct intervals *set, uint64_t begin, uint64_t end)
{
    struct interval *node = set->root;

    /* If anything on the left reaches beyond `begin`, either it touches or nothing on the right
     * can, as that begins even later. */
    while (node && !(node->begin < end && begin < node->end))
        node = node->left && node->left->reach > begin ? node->left : node->right;
    return node;
}
