/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg.h - what the two halves of the picture share: text that is safe in XML, and the colours of
 * distances.
 */
#ifndef RONDO_TOPOLOGY_SVG_H
#define RONDO_TOPOLOGY_SVG_H

#include <stdio.h>

/*
 * Text of a machine (model names, device names) with <, > and & written as XML wants them, control
 * characters left out.
 */
void svg_text(FILE *to, const char *text);
/* The colour of an edge of this distance, TOPOLOGY_SAME .. TOPOLOGY_MACHINE. */
const char *svg_colour(int distance);

struct svg_tree {
    const char *title;
    int count;
    const int *parents;
    int (*distance)(const void *context, int a, int b);
    const void *context;
};
/*
 * Draws the tree with its upper left corner at (x, y); width and height come back. False: out of
 * memory.
 */
_Bool svg_tree_draw(const struct svg_tree *tree, double x, double y, double *ret_w, double *ret_h,
                    FILE *to);

#endif
