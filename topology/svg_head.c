/* SPDX-License-Identifier: BSD-3-Clause */
/* svg_head.c - what stands before the picture: arrow heads, style, and what the colours mean. */
#include "topology/boxes.h"
#include "topology/svg.h"

#include <string.h>

enum { LEGEND_Y = 44, STROKE = 24, STROKE_GAP = 6, ENTRY_GAP = 20 };

/* The two scales in words: what a distance means between cores, and what between GPUs. */
static const char *const place_names[] = {
    "same core", "", "shared cache", "same NUMA node", "same package", "other package"};
static const char *const device_names[] = {"same GPU",        "NVLink",
                                           "same PCI switch", "same host bridge or NUMA node",
                                           "same package",    "other package"};

static void draw_arrow_heads(FILE *to)
{
    fprintf(to, "<defs>\n");
    for (int d = 0; d <= TOPOLOGY_MACHINE; d++)
        fprintf(to,
                "<marker id=\"head%d\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
                "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
                "<path d=\"M0 0L8 4L0 8z\" fill=\"%s\"/></marker>\n",
                d, svg_colour(d));
    fprintf(to, "</defs>\n");
}

static void draw_style(FILE *to)
{
    fprintf(to,
            "<style>text{font-family:\"DejaVu Sans\",Verdana,sans-serif;font-size:%dpx;"
            "fill:#2b3440}.heading{font-size:%dpx;font-weight:bold}.title{fill:#5b6775}"
            ".page{font-size:17px;font-weight:bold}.rank{font-size:14px;font-weight:bold}"
            ".small{font-size:%dpx;fill:#77808b}.device{font-size:%dpx;font-weight:bold}"
            ".rank,.small,.device,.leaf,.inner{text-anchor:middle}.inner{fill:#ffffff;"
            "font-weight:bold}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            BOXES_TITLE_PIXELS, BOXES_HEADING_PIXELS, BOXES_SMALL_PIXELS, BOXES_DEVICE_PIXELS);
}

/* The words of a colour depend on whether ranks, GPUs or both are that far apart. */
static void name_distance(const struct svg_drawn *drawn, int distance, char *text, size_t size)
{
    const char *place = drawn->places >> distance & 1 ? place_names[distance] : "";
    const char *device = drawn->devices >> distance & 1 ? device_names[distance] : "";

    if (*place && *device && strcmp(place, device) != 0)
        snprintf(text, size, "%s; GPUs: %s", place, device);
    else
        snprintf(text, size, "%s", *place ? place : device);
}

double svg_head_draw(const struct svg_drawn *drawn, double x, FILE *to)
{
    double right = x;

    draw_arrow_heads(to);
    draw_style(to);
    for (int d = 0; d <= TOPOLOGY_MACHINE; d++) {
        char name[96];

        if (!((drawn->places | drawn->devices) >> d & 1))
            continue;
        name_distance(drawn, d, name, sizeof(name));
        fprintf(to,
                "<path d=\"M%.1f %dh%d\" stroke=\"%s\" stroke-width=\"3\"/>"
                "<text x=\"%.1f\" y=\"%d\" class=\"title\">%s</text>\n",
                x, LEGEND_Y, STROKE, svg_colour(d), x + STROKE + STROKE_GAP, LEGEND_Y + 4, name);
        right = x + STROKE + STROKE_GAP + boxes_text_width(name, BOXES_TITLE_PIXELS, false);
        x = right + ENTRY_GAP;
    }
    return right;
}
