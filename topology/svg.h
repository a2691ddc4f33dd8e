/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg.h - what the parts of the picture share: text that is safe in XML, the colours of distances,
 * and which distances are drawn: the legend explains those and no others.
 */
#ifndef RONDO_TOPOLOGY_SVG_H
#define RONDO_TOPOLOGY_SVG_H

#include <stdio.h>

/*
 * Text of a machine (model names, device names) with <, >, & and quotes written as XML wants them;
 * what is not printable ASCII is left out.
 */
void svg_text(FILE *to, const char *text);
/* An attribute that makes the font smaller, if `text` would be wider than `room`. */
void svg_fit(FILE *to, const char *text, int pixels, double room);
/* The colour of an edge of this distance, TOPOLOGY_SAME .. TOPOLOGY_MACHINE. */
const char *svg_colour(int distance);

/* Sets of distances that have been drawn, 1 << distance each. */
struct svg_drawn {
    unsigned places, devices; /* between ranks; between GPUs */
};
/* Arrow heads, style, and the legend, which begins at x; where it ends comes back. */
double svg_head_draw(const struct svg_drawn *drawn, double x, FILE *to);

struct svg_tree {
    const char *title;
    int count;
    const int *parents;
    int (*distance)(const void *context, int a, int b);
    const void *context;
    unsigned *drawn; /* gets the distances of the edges */
};
/*
 * Draws the tree with its upper left corner at (x, y); width and height come back. False: out of
 * memory.
 */
_Bool svg_tree_draw(const struct svg_tree *tree, double x, double y, double *ret_w, double *ret_h,
                    FILE *to);

#endif
