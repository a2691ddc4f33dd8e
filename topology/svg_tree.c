/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg_tree.c - a tree as levels of circles. Children that have children themselves stand side by
 * side; the leaves of a node stand together in one block, to which one edge leads, so that a node
 * with 31 of them stays readable.
 */
#include "topology/boxes.h"
#include "topology/svg.h"

#include <stdbool.h>
#include <stdlib.h>

enum { STEP = 32, RADIUS = 13, LEVEL = 62, BLOCK_COLUMNS = 4, BLOCK_GAP = 14, HEADING = 30 };

struct layout {
    const struct svg_tree *tree;
    double *x, *y;
    bool *inner; /* has children */
    double bottom;
    FILE *to;
};

static int leaves_of(const struct layout *l, int node)
{
    int count = 0;

    for (int i = node + 1; i < l->tree->count; i++)
        count += l->tree->parents[i] == node && !l->inner[i];
    return count;
}

static double block_width(int leaves)
{
    return leaves ? (leaves < BLOCK_COLUMNS ? leaves : BLOCK_COLUMNS) * STEP + BLOCK_GAP : 0;
}

static double width_of(const struct layout *l, int node)
{
    double width = block_width(leaves_of(l, node));

    for (int i = node + 1; i < l->tree->count; i++)
        if (l->tree->parents[i] == node && l->inner[i])
            width += width_of(l, i);
    return width < STEP + BLOCK_GAP ? STEP + BLOCK_GAP : width;
}

static void edge(const struct layout *l, int from, int to, double x, double y)
{
    double x0 = l->x[from], y0 = l->y[from] + RADIUS;
    double middle = (y0 + y) / 2;
    int distance = l->tree->distance(l->tree->context, from, to);

    *l->tree->drawn |= 1u << distance;
    fprintf(l->to,
            "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"2\"/>\n",
            x0, y0, x0, middle, x, middle, x, y, svg_colour(distance));
}

static void circle(const struct layout *l, int node, bool inner)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", node);
    fprintf(l->to,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\" stroke=\"#3b6ea8\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\"",
            l->x[node], l->y[node], RADIUS, inner ? "#3b6ea8" : "#ffffff", l->x[node],
            l->y[node] + 4, inner ? "inner" : "leaf");
    svg_fit(l->to, number, BOXES_TITLE_PIXELS, 2 * RADIUS - 2);
    fprintf(l->to, ">%s</text>\n", number);
}

/* The block of leaves under `node`, its left border at x. */
static void draw_leaves(struct layout *l, int node, double x)
{
    int leaves = leaves_of(l, node);
    int columns = leaves < BLOCK_COLUMNS ? leaves : BLOCK_COLUMNS;
    double top = l->y[node] + LEVEL;
    int index = 0;

    if (!leaves)
        return;
    x += BLOCK_GAP / 2;
    for (int i = node + 1; i < l->tree->count; i++) {
        if (l->tree->parents[i] != node || l->inner[i])
            continue;
        l->x[i] = x + (index % columns) * STEP + STEP / 2;
        l->y[i] = top + (index / columns) * STEP;
        if (l->y[i] + RADIUS > l->bottom)
            l->bottom = l->y[i] + RADIUS;
        if (!index)
            edge(l, node, i, x + columns * STEP / 2.0, top - STEP / 2);
        circle(l, i, false);
        index++;
    }
    fprintf(l->to,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"none\" "
            "stroke=\"#b9c7d8\"/>\n",
            x, top - STEP / 2, columns * STEP, (index + columns - 1) / columns * STEP);
}

static void draw(struct layout *l, int node, double x, double y)
{
    double left = x;

    l->x[node] = x + width_of(l, node) / 2;
    l->y[node] = y;
    if (y + RADIUS > l->bottom)
        l->bottom = y + RADIUS;
    draw_leaves(l, node, left);
    left += block_width(leaves_of(l, node));
    for (int i = node + 1; i < l->tree->count; i++) {
        if (l->tree->parents[i] != node || !l->inner[i])
            continue;
        draw(l, i, left, y + LEVEL);
        edge(l, node, i, l->x[i], l->y[i] - RADIUS);
        left += width_of(l, i);
    }
    circle(l, node, true);
}

bool svg_tree_draw(const struct svg_tree *tree, double x, double y, double *ret_w, double *ret_h,
                   FILE *to)
{
    size_t count = (size_t)tree->count;
    struct layout l = {.tree = tree, .to = to};
    bool good;

    l.x = calloc(count, sizeof(*l.x));
    l.y = calloc(count, sizeof(*l.y));
    l.inner = calloc(count, sizeof(*l.inner));
    good = l.x && l.y && l.inner;
    if (good) {
        for (int i = 1; i < tree->count; i++)
            l.inner[tree->parents[i]] = true;
        fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"heading\">%s</text>\n", x, y + 12,
                tree->title);
        draw(&l, 0, x, y + HEADING + RADIUS);
        *ret_w = width_of(&l, 0);
        *ret_h = l.bottom + STEP / 2 - y;
    }
    free(l.x);
    free(l.y);
    free(l.inner);
    return good;
}
