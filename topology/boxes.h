/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boxes.h - the picture before it is drawn: machine > packages > NUMA nodes > caches > cores as
 * nested boxes, devices in the package that they are wired to, all with their places on the page.
 */
#ifndef RONDO_TOPOLOGY_BOXES_H
#define RONDO_TOPOLOGY_BOXES_H

#include "topology/inside.h"

enum box_kind { BOX_MACHINE, BOX_PACKAGE, BOX_NUMA, BOX_CACHE, BOX_CORE, BOX_SWITCH, BOX_DEVICE };

struct box {
    enum box_kind kind;
    char label[64];
    char detail[48];   /* device: the line below its label */
    int item;          /* core: its logical index, -1 not usable; device: its index; else unused */
    int parent;        /* index of the box around it, -1 */
    double x, y, w, h; /* on the page, in pixels */
};

/* Returns how wide a text is drawn, in pixels, in DejaVu Sans; Verdana is about as wide. */
double boxes_text_width(const char *text, int pixels, bool bold);
/* From the left border of a box to its title; the sizes of the fonts. */
enum { BOXES_INDENT = 10, BOXES_TITLE_PIXELS = 11, BOXES_HEADING_PIXELS = 13 };
enum { BOXES_DEVICE_PIXELS = 12, BOXES_SMALL_PIXELS = 9 };

struct boxes {
    int count, room;
    struct box *box; /* parents before their children; [0] is the machine */
};

rondo_result boxes_open(const struct topology *topology, struct boxes *ret_boxes);
void boxes_close(struct boxes *boxes);
/* The box of usable core or device `item`; NULL if it is not there. */
const struct box *boxes_find(const struct boxes *boxes, enum box_kind kind, int item);

#endif
