/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.c - rings and trees over points (cores, GPUs, nodes) of which only pairwise distances are
 * known.
 *
 * Machines are nested boxes, and so are the distances: near groups lie in larger, farther ones. A
 * good ring enters and leaves each group once, a good tree enters it once:
 *
 *     | 0-1 2-3 |  far  | 4-5 6-7 |
 *
 *     ring 0 1 2 3 4 5 6 7, crosses the middle twice (3-4, 7-0)
 *     tree 1,2,4 under 0; 3 under 2; 5,6 under 4; 7 under 6: crosses it once (4-0)
 *
 * Everything here is a pure function of the distances, without allocation, so each rank computes
 * the same for itself.
 */
#include "topology/topology.h"

#include <limits.h>
#include <string.h>

enum { EXACT_MAX = 10 };

typedef int (*distance_fn)(const void *context, int a, int b);

/* ---- Exact: depth first in ascending order, so the first of equally short rings is kept ------ */

struct search {
    int count;
    int distance[EXACT_MAX][EXACT_MAX];
    int least; /* of all distances: what every missing edge costs at least */
    int order[EXACT_MAX];
    bool used[EXACT_MAX];
    int best_order[EXACT_MAX];
    int best;
};

static void extend(struct search *s, int placed, int length)
{
    int last = s->order[placed - 1];

    if (length + (s->count - placed + 1) * s->least >= s->best)
        return;
    if (placed == s->count) {
        length += s->distance[last][0];
        if (length < s->best) {
            s->best = length;
            memcpy(s->best_order, s->order, sizeof(s->order));
        }
        return;
    }
    for (int next = 1; next < s->count; next++) {
        if (s->used[next])
            continue;
        s->used[next] = true;
        s->order[placed] = next;
        extend(s, placed + 1, length + s->distance[last][next]);
        s->used[next] = false;
    }
}

static void exact_ring(int count, distance_fn distance, const void *context, int *ret_order)
{
    struct search s = {.count = count, .least = INT_MAX / (2 * EXACT_MAX), .best = INT_MAX};

    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            s.distance[a][b] = a == b ? 0 : distance(context, a, b);
            if (a != b && s.distance[a][b] < s.least)
                s.least = s.distance[a][b];
        }
    s.used[0] = true;
    extend(&s, 1, 0);
    memcpy(ret_order, s.best_order, (size_t)count * sizeof(*ret_order));
}

/* ---- Beyond: nearest neighbour, then 2-opt --------------------------------------------------- */

/* order[0..placed) is the ring so far; behind it stand the points that are left, in any order. */
static void nearest_first(int count, distance_fn distance, const void *context, int *order)
{
    for (int placed = 1; placed < count; placed++) {
        int best = placed;
        int best_distance = INT_MAX;

        for (int i = placed; i < count; i++) {
            int d = distance(context, order[placed - 1], order[i]);

            if (d < best_distance || (d == best_distance && order[i] < order[best])) {
                best = i;
                best_distance = d;
            }
        }
        int point = order[best];
        order[best] = order[placed];
        order[placed] = point;
    }
}

static void reverse(int *order, int from, int to)
{
    for (; from < to; from++, to--) {
        int point = order[from];

        order[from] = order[to];
        order[to] = point;
    }
}

/*
 * Replace the edges (i, i+1) and (j, j+1) by (i, j) and (i+1, j+1) where that is shorter. True if
 * anything was.
 */
static bool uncross(int count, distance_fn distance, const void *context, int *order)
{
    bool better = false;

    for (int i = 0; i < count - 2; i++)
        for (int j = i + 2; j < count; j++) {
            int a = order[i], b = order[i + 1], c = order[j], d = order[(j + 1) % count];

            if (d == a)
                continue;
            if (distance(context, a, c) + distance(context, b, d) <
                distance(context, a, b) + distance(context, c, d)) {
                reverse(order, i + 1, j);
                better = true;
            }
        }
    return better;
}

void topology_ring(int count, distance_fn distance, const void *context, int *ret_order)
{
    if (count < 1)
        return;
    if (count <= EXACT_MAX) {
        exact_ring(count, distance, context, ret_order);
        return;
    }
    for (int i = 0; i < count; i++)
        ret_order[i] = i;
    nearest_first(count, distance, context, ret_order);
    while (uncross(count, distance, context, ret_order))
        continue; /* ends: every change makes a sum of integers smaller */
}

/*
 * A point hangs under the nearest one of those before it, of equally near ones under the first. In
 * nested groups this is the first of the smallest group of which it is not the first itself, so
 * each group is entered through its first.
 */
void topology_tree(int count, distance_fn distance, const void *context, int *ret_parents)
{
    for (int i = 0; i < count; i++) {
        int nearest = INT_MAX;

        ret_parents[i] = -1;
        for (int j = 0; j < i; j++) {
            int d = distance(context, i, j);

            if (d < nearest) {
                nearest = d;
                ret_parents[i] = j;
            }
        }
    }
}
