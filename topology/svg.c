/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg.c - the picture of a machine: its boxes, the ranks on its cores, the ring over them as arrows
 * between the boxes, and below it the tree. Where there are GPUs, the same for them. Arrows have
 * the colour of the distance they bridge.
 */
#include "topology/svg.h"

#include "topology/boxes.h"

#include "base/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 20, HEADER = 54, TREE_GAP = 34 };

struct picture {
    const struct topology *topology;
    struct boxes boxes;
    int ranks;
    struct topology_place *places; /* of the ranks */
    int *order;                    /* room for a ring or tree over ranks or GPUs */
    FILE *to;
    double w, h;
    bool bows; /* which arrows are drawn now: bows, or the straight ones between neighbours */
};

void svg_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(to, "&#%d;", c);
        else if (c >= 0x20 && c < 0x7f)
            fputc(c, to);
    }
}

const char *svg_colour(int distance)
{
    static const char *const colours[] = {"#9aa5b1", "#76b900", "#2e9e6b",
                                          "#3b6ea8", "#8a5cc2", "#e07a1f"};

    return colours[distance < 0 ? 0 : distance > TOPOLOGY_MACHINE ? TOPOLOGY_MACHINE : distance];
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static void draw_rect(const struct picture *p, const struct box *box, const char *fill,
                      const char *stroke, int radius)
{
    fprintf(p->to,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\" fill=\"%s\" "
            "stroke=\"%s\"/>\n",
            box->x, box->y, box->w, box->h, radius, fill, stroke);
}

static void draw_words(const struct picture *p, double x, double y, const char *class,
                       const char *text)
{
    fprintf(p->to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    svg_text(p->to, text);
    fprintf(p->to, "</text>\n");
}

/* "5", "1,3", or "1,3.." on a core that many ranks share. */
static void name_ranks(const struct picture *p, int core, char *text, size_t size)
{
    int found = 0;
    size_t length = 0;

    text[0] = 0;
    for (int rank = 0; rank < p->ranks && length < size; rank++) {
        if (p->places[rank].core != core)
            continue;
        if (found++ == 2) {
            snprintf(text + length, size - length, "..");
            return;
        }
        length +=
            (size_t)snprintf(text + length, size - length, "%s%d", found > 1 ? "," : "", rank);
    }
}

static void draw_core(const struct picture *p, const struct box *box)
{
    char ranks[32];

    name_ranks(p, box->item, ranks, sizeof(ranks));
    if (box->item < 0)
        draw_rect(p, box, "#e3e5e8", "#c9cdd2", 5);
    else
        draw_rect(p, box, ranks[0] ? "#fff6d6" : "#ffffff", ranks[0] ? "#d9a400" : "#b9c0c8", 5);
    if (box->item >= 0)
        draw_words(p, box->x + box->w / 2, box->y + 18, "rank", ranks);
    draw_words(p, box->x + box->w / 2, box->y + box->h - 6, "small", box->label);
}

static void draw_device(const struct picture *p, const struct box *box)
{
    static const char *const fills[] = {"#d8f0c8", "#dce8fa", "#ece0f8"};
    static const char *const strokes[] = {"#5b9a32", "#4a7fc1", "#8a5cc2"};
    const struct topology_device *device = topology_device_at(p->topology, box->item);
    char text[96];

    draw_rect(p, box, fills[device->kind], strokes[device->kind], 8);
    if (device->kind == TOPOLOGY_GPU)
        snprintf(text, sizeof(text), "GPU %d", box->item);
    else
        snprintf(text, sizeof(text), "%s %s", topology_device_kind_name(device->kind), box->label);
    draw_words(p, box->x + box->w / 2, box->y + 17, "device", text);
    if (device->link_GBps > 0)
        snprintf(text, sizeof(text), "%s, %.0f GB/s",
                 device->kind == TOPOLOGY_GPU ? box->label : device->pci + 5, device->link_GBps);
    else
        snprintf(text, sizeof(text), "%s", device->pci[0] ? device->pci : "virtual");
    draw_words(p, box->x + box->w / 2, box->y + 32, "small", text);
}

static void draw_box(const struct picture *p, const struct box *box)
{
    static const char *const fills[] = {"#ffffff", "#f2f4f7", "#e6eef8", "#dcefe4",
                                        "",        "#f7f4ec", ""};

    if (box->kind == BOX_CORE) {
        draw_core(p, box);
    } else if (box->kind == BOX_DEVICE) {
        draw_device(p, box);
    } else {
        draw_rect(p, box, fills[box->kind], "#c3cad3", 8);
        draw_words(p, box->x + 10, box->y + 15, box->kind == BOX_PACKAGE ? "heading" : "title",
                   box->label);
    }
}

/* ---- Rings ----------------------------------------------------------------------------------- */

/* Where the line from the middle of `box` towards (x, y) leaves it. */
static void border(const struct box *box, double x, double y, double *ret_x, double *ret_y)
{
    double cx = box->x + box->w / 2, cy = box->y + box->h / 2;
    double dx = x - cx, dy = y - cy;
    double tx = fabs(dx) > 0.01 ? (box->w / 2) / fabs(dx) : 1e9;
    double ty = fabs(dy) > 0.01 ? (box->h / 2) / fabs(dy) : 1e9;
    double t = tx < ty ? tx : ty;

    *ret_x = cx + t * dx;
    *ret_y = cy + t * dy;
}

/*
 * Neighbours get a short straight arrow, others a bow beside the straight line, so that it shows
 * what it passes. Bows are drawn before cores and devices, which then cover them: text stays
 * readable.
 */
static void arrow(const struct picture *p, const struct box *from, const struct box *to,
                  int distance)
{
    double ax, ay, bx, by;
    double fx = from->x + from->w / 2, fy = from->y + from->h / 2;
    double tx = to->x + to->w / 2, ty = to->y + to->h / 2;
    double length = hypot(tx - fx, ty - fy);
    double bow = length < 1.6 * from->w ? 0 : 0.14;
    double mx = (fx + tx) / 2 + bow * (ty - fy), my = (fy + ty) / 2 - bow * (tx - fx);

    if (from == to || (bow > 0) != p->bows)
        return;
    border(from, mx, my, &ax, &ay);
    border(to, mx, my, &bx, &by);
    fprintf(p->to,
            "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"%s\" opacity=\"%s\" marker-end=\"url(#head%d)\"/>\n",
            ax, ay, mx, my, bx, by, svg_colour(distance), bow > 0 ? "2.2" : "2",
            bow > 0 ? "0.8" : "1", distance);
}

static void draw_rank_ring(const struct picture *p)
{
    topology_ring(p->ranks, topology_distance_of_places, p->places, p->order);
    for (int i = 0; i < p->ranks && p->ranks > 1; i++) {
        int from = p->order[i], to = p->order[(i + 1) % p->ranks];

        arrow(p, boxes_find(&p->boxes, BOX_CORE, p->places[from].core),
              boxes_find(&p->boxes, BOX_CORE, p->places[to].core),
              topology_place_distance(&p->places[from], &p->places[to]));
    }
}

static void draw_gpu_ring(const struct picture *p, int gpus)
{
    topology_ring(gpus, topology_distance_of_devices, p->topology, p->order);
    for (int i = 0; i < gpus && gpus > 1; i++) {
        int from = p->order[i], to = p->order[(i + 1) % gpus];

        arrow(p, boxes_find(&p->boxes, BOX_DEVICE, from), boxes_find(&p->boxes, BOX_DEVICE, to),
              topology_distance_of_devices(p->topology, from, to));
    }
}

/* ---- The page -------------------------------------------------------------------------------- */

static void draw_head(struct picture *p)
{
    static const char *const names[] = {"",
                                        "NVLink",
                                        "shared cache or PCI switch",
                                        "same NUMA node or host bridge",
                                        "same package",
                                        "other package"};
    double x = MARGIN;

    fprintf(p->to, "<defs>\n");
    for (int d = 0; d <= TOPOLOGY_MACHINE; d++)
        fprintf(p->to,
                "<marker id=\"head%d\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
                "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
                "<path d=\"M0 0L8 4L0 8z\" fill=\"%s\"/></marker>\n",
                d, svg_colour(d));
    fprintf(p->to,
            "</defs>\n<style>text{font-family:\"DejaVu Sans\",Verdana,sans-serif;font-size:11px;"
            "fill:#2b3440}.heading{font-size:13px;font-weight:bold}.title{fill:#5b6775}"
            ".page{font-size:17px;font-weight:bold}.rank{font-size:14px;font-weight:bold}"
            ".small{font-size:9px;fill:#77808b}.device{font-size:12px;font-weight:bold}"
            ".rank,.small,.device,.leaf,.inner{text-anchor:middle}.inner{fill:#ffffff;"
            "font-weight:bold}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
            "<text x=\"%d\" y=\"28\" class=\"page\">%d rank%s on %d usable core%s%s</text>\n",
            MARGIN, p->ranks, p->ranks == 1 ? "" : "s", p->topology->cores,
            p->topology->cores == 1 ? "" : "s",
            p->topology->recorded ? " of a recorded machine" : "");
    for (int d = p->topology->link ? TOPOLOGY_LINKED : TOPOLOGY_CLOSE; d <= TOPOLOGY_MACHINE; d++) {
        fprintf(p->to,
                "<path d=\"M%.0f 44h24\" stroke=\"%s\" stroke-width=\"3\"/>"
                "<text x=\"%.0f\" y=\"48\" class=\"title\">%s</text>\n",
                x, svg_colour(d), x + 30, names[d]);
        x += 50 + 6.6 * (double)strlen(names[d]);
    }
    if (x + MARGIN > p->w)
        p->w = x + MARGIN;
}

static bool draw_tree(struct picture *p, const struct svg_tree *shape)
{
    double w, h;

    topology_tree(shape->count, shape->distance, shape->context, p->order);
    if (!svg_tree_draw(shape, MARGIN, p->h + TREE_GAP / 2, &w, &h, p->to))
        return false;
    p->h += h + TREE_GAP / 2;
    p->w = w + 2 * MARGIN > p->w ? w + 2 * MARGIN : p->w;
    return true;
}

static bool draw_all(struct picture *p)
{
    struct box *box = p->boxes.box;
    int gpus = topology_gpus(p->topology);
    struct svg_tree ranks = {"tree over the ranks", p->ranks, p->order, topology_distance_of_places,
                             p->places};
    struct svg_tree devices = {"tree over the GPUs", gpus, p->order, topology_distance_of_devices,
                               p->topology};

    for (int i = 0; i < p->boxes.count; i++) {
        box[i].x += MARGIN;
        box[i].y += HEADER + 6;
    }
    snprintf(box[0].label, sizeof(box[0].label), "machine");
    p->w = box[0].w + 2 * MARGIN;
    p->h = HEADER + box[0].h + 6;
    draw_head(p);
    for (int pass = 0; pass < 2; pass++) {
        bool inner = pass == 1;

        for (int i = 0; i < p->boxes.count; i++)
            if ((box[i].kind == BOX_CORE || box[i].kind == BOX_DEVICE) == inner)
                draw_box(p, &box[i]);
        p->bows = !inner;
        draw_rank_ring(p);
        draw_gpu_ring(p, gpus);
    }
    return draw_tree(p, &ranks) && (gpus < 2 || draw_tree(p, &devices));
}

/* The body is written to memory first: the size of the page is known at its end only. */
static rondo_result draw(struct picture *p, FILE *file)
{
    char *body = NULL;
    size_t length;
    bool good;

    p->to = open_memstream(&body, &length);
    if (!p->to)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while drawing the machine");
    good = draw_all(p);
    good &= !fclose(p->to);
    if (good) {
        fprintf(file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\">\n",
                p->w, p->h + MARGIN, p->w, p->h + MARGIN);
        fwrite(body, 1, length, file);
        fprintf(file, "</svg>\n");
    }
    free(body);
    return good ? RONDO_OK
                : rondo_fail(RONDO_ERROR_MEMORY, "out of memory while drawing the machine");
}

static rondo_result draw_to(struct picture *p, const char *name)
{
    FILE *file = fopen(name, "we");
    rondo_result result;

    if (!file)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot write the picture to %s", name);
    result = draw(p, file);
    if (ferror(file) | fclose(file) && !result)
        result = rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot write the picture to %s", name);
    return result;
}

rondo_result topology_write_svg(const struct topology *topology, const char *file, int ranks)
{
    struct picture p = {.topology = topology, .ranks = ranks};
    rondo_result result;

    if (ranks < 1)
        return rondo_fail(RONDO_ERROR_INVALID, "a picture needs at least one rank, not %d", ranks);
    result = boxes_open(topology, &p.boxes);
    if (result)
        return result;
    p.places = calloc((size_t)ranks, sizeof(*p.places));
    p.order = calloc((size_t)ranks + (size_t)topology->devices, sizeof(*p.order));
    if (!p.places || !p.order) {
        result = rondo_fail(RONDO_ERROR_MEMORY, "out of memory while drawing the machine");
    } else {
        for (int rank = 0; rank < ranks; rank++)
            topology_place(topology, rank, ranks, &p.places[rank]);
        result = draw_to(&p, file);
    }
    free(p.places);
    free(p.order);
    boxes_close(&p.boxes);
    return result;
}
