/* SPDX-License-Identifier: BSD-3-Clause */
/* test_order.c - rings and trees: short, entered once per group, and the same for everybody. */
#include "recorded.h"

#include <criterion/criterion.h>

#include <stdlib.h>

/* ---- Points in nested groups of 2, 4, 8 .. shuffled by a fixed multiplier -------------------- */

struct boxes {
    int count, step; /* point i stands at (i * step) % count */
};

static int nested(const void *context, int a, int b)
{
    const struct boxes *boxes = context;
    int x = a * boxes->step % boxes->count, y = b * boxes->step % boxes->count, d = 0;

    for (; x != y; x /= 2, y /= 2)
        d++;
    return d;
}

static int length_of(int count, int (*distance)(const void *, int, int), const void *context,
                     const int *order)
{
    int length = 0;

    for (int i = 0; i < count; i++)
        length += distance(context, order[i], order[(i + 1) % count]);
    return length;
}

static void expect_permutation(int count, const int *order)
{
    bool seen[256] = {false};

    cr_assert_eq(order[0], 0);
    for (int i = 0; i < count; i++) {
        cr_assert(order[i] >= 0 && order[i] < count && !seen[order[i]]);
        seen[order[i]] = true;
    }
}

/* The shortest ring by trying all of them. */
static int shortest(int count, int (*distance)(const void *, int, int), const void *context,
                    int *order, int placed)
{
    int best = 1 << 20;

    if (placed == count)
        return length_of(count, distance, context, order);
    for (int i = placed; i < count; i++) {
        int length, point = order[placed];

        order[placed] = order[i];
        order[i] = point;
        length = shortest(count, distance, context, order, placed + 1);
        order[i] = order[placed];
        order[placed] = point;
        best = length < best ? length : best;
    }
    return best;
}

static int random_distance(const void *context, int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);
    unsigned x = (low * 7919 + high * 104729 + *(const unsigned *)context * 31) * 2654435761u;

    return 1 + (int)((x >> 12) % 50);
}

Test(ring, is_the_shortest_of_all_rings_up_to_eight_points)
{
    for (int count = 1; count <= 8; count++)
        for (unsigned seed = 0; seed < 6; seed++) {
            int order[8], all[8] = {0, 1, 2, 3, 4, 5, 6, 7};

            topology_ring(count, random_distance, &seed, order);
            expect_permutation(count, order);
            cr_expect_eq(length_of(count, random_distance, &seed, order),
                         shortest(count, random_distance, &seed, all, 1), "%d points, seed %u",
                         count, seed);
        }
}

static int equal(const void *context, int a, int b)
{
    return a == b ? 0 : 3;
}

Test(ring, of_equal_distances_goes_in_order)
{
    for (int count = 1; count <= 40; count++) {
        int order[40];

        topology_ring(count, equal, NULL, order);
        for (int i = 0; i < count; i++)
            cr_expect_eq(order[i], i);
    }
}

Test(ring, enters_every_nested_group_once)
{
    for (int count = 2; count <= 128; count *= 2) {
        struct boxes boxes = {count, count > 4 ? count / 2 + 3 - count / 2 % 2 : 1};
        int order[128], best = 0;

        boxes.step |= 1;
        topology_ring(count, nested, &boxes, order);
        expect_permutation(count, order);
        /*
         * in sorted order: the level l between neighbours occurs count/2^l times, the top one twice
         */
        for (int level = 1, edges = count / 2; edges >= 1; level++, edges /= 2)
            best += level * (edges == 1 ? 2 : edges);
        cr_expect_eq(length_of(count, nested, &boxes, order), best, "%d points", count);
    }
}

Test(ring, of_many_points_is_not_longer_than_plain_order)
{
    for (unsigned seed = 0; seed < 5; seed++) {
        int order[60], plain[60], again[60];

        for (int i = 0; i < 60; i++)
            plain[i] = i;
        topology_ring(60, random_distance, &seed, order);
        topology_ring(60, random_distance, &seed, again);
        expect_permutation(60, order);
        cr_expect_arr_eq(order, again, sizeof(order));
        cr_expect_lt(length_of(60, random_distance, &seed, order),
                     length_of(60, random_distance, &seed, plain) / 2);
    }
}

Test(ring, of_no_points_writes_nothing)
{
    int order = 77;

    topology_ring(0, equal, NULL, &order);
    cr_expect_eq(order, 77);
}

Test(tree, enters_every_nested_group_once)
{
    struct boxes boxes = {64, 27};
    int parents[64], edges[8] = {0};

    topology_tree(64, nested, &boxes, parents);
    cr_expect_eq(parents[0], -1);
    for (int i = 1; i < 64; i++) {
        cr_assert(parents[i] >= 0 && parents[i] < i);
        edges[nested(&boxes, i, parents[i])]++;
    }
    for (int level = 1; level <= 6; level++)
        cr_expect_eq(edges[level], 64 >> level, "level %d", level);
}

Test(tree, of_one_point_is_its_root)
{
    int parent = 5;

    topology_tree(1, equal, NULL, &parent);
    cr_expect_eq(parent, -1);
}

/* ---- On recorded machines -------------------------------------------------------------------- */

static int crossings(const struct topology *topology, int count, const int *order)
{
    int crossed = 0;

    for (int i = 0; i < count; i++)
        crossed += topology_device_distance(topology, order[i], order[(i + 1) % count]) ==
                   TOPOLOGY_MACHINE;
    return crossed;
}

Test(ring, over_eight_gpus_crosses_sockets_twice_and_keeps_switch_mates_together)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    int order[8], mates = 0;

    cr_assert_eq(topology_gpus(topology), 8);
    topology_ring(8, topology_distance_of_devices, topology, order);
    expect_permutation(8, order);
    cr_expect_eq(crossings(topology, 8, order), 2);
    for (int i = 0; i < 8; i++)
        mates += topology_device_distance(topology, order[i], order[(i + 1) % 8]) == TOPOLOGY_CLOSE;
    cr_expect_eq(mates, 4);
    topology_close(topology);
}

Test(tree, over_eight_gpus_crosses_sockets_once)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    int parents[8], edges[TOPOLOGY_MACHINE + 1] = {0};

    topology_tree(8, topology_distance_of_devices, topology, parents);
    for (int i = 1; i < 8; i++)
        edges[topology_device_distance(topology, i, parents[i])]++;
    cr_expect_eq(edges[TOPOLOGY_MACHINE], 1);
    cr_expect_eq(edges[TOPOLOGY_NUMA], 2);
    cr_expect_eq(edges[TOPOLOGY_CLOSE], 4);
    topology_close(topology);
}

Test(ring, over_ranks_of_four_sockets_crosses_once_per_socket)
{
    struct topology *topology = recorded_open("four_sockets");
    struct topology_place places[32];
    int order[32], parents[32], ring = 0, tree = 0;

    for (int rank = 0; rank < 32; rank++)
        topology_place(topology, (rank * 11) % 32, 32, &places[rank]); /* ranks not in core order */
    topology_ring(32, topology_distance_of_places, places, order);
    topology_tree(32, topology_distance_of_places, places, parents);
    expect_permutation(32, order);
    for (int i = 0; i < 32; i++) {
        ring +=
            topology_distance_of_places(places, order[i], order[(i + 1) % 32]) == TOPOLOGY_MACHINE;
        if (i)
            tree += topology_distance_of_places(places, i, parents[i]) == TOPOLOGY_MACHINE;
    }
    cr_expect_eq(ring, 4);
    cr_expect_eq(tree, 3);
    topology_close(topology);
}
