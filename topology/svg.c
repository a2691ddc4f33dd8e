/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg.c - the picture of a machine: its boxes, the ranks on its cores, the ring over them as arrows
 * between the boxes, and below it the tree. Where there are GPUs, the same for them. Arrows have
 * the colour of the distance they bridge.
 */
#include "topology/svg.h"

#include "base/caller/descriptor.h"
#include "topology/boxes.h"

#include "base/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 20, HEADER = 54, TREE_GAP = 34, PAGE_PIXELS = 17, RANK_PIXELS = 14 };

struct picture {
    const struct topology *topology;
    struct boxes boxes;
    int ranks;
    struct topology_place *places; /* of the ranks */
    int *order;                    /* room for a ring or tree over ranks or GPUs */
    FILE *to;
    double w, h;
    struct svg_drawn drawn;
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

void svg_fit(FILE *to, const char *text, int pixels, double room)
{
    double wide = boxes_text_width(text, pixels, true);

    if (wide > room)
        fprintf(to, " style=\"font-size:%.1fpx\"", pixels * room / wide);
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

/* "5", "1,3", or "1,3.." on a core that more ranks share; of `most` numbers. */
static void list_ranks(const struct picture *p, int core, int most, char *text, size_t size)
{
    int found = 0;
    size_t length = 0;

    text[0] = 0;
    for (int rank = 0; rank < p->ranks && length < size; rank++) {
        if (p->places[rank].core != core)
            continue;
        if (found++ == most) {
            snprintf(text + length, size - length, "..");
            return;
        }
        length +=
            (size_t)snprintf(text + length, size - length, "%s%d", found > 1 ? "," : "", rank);
    }
}

/* Draw as many ranks as the box has room for, but one at least, however small. */
static void draw_ranks(const struct picture *p, const struct box *box)
{
    double room = box->w - 4;
    char ranks[32];

    list_ranks(p, box->item, 2, ranks, sizeof(ranks));
    if (boxes_text_width(ranks, RANK_PIXELS, true) > room)
        list_ranks(p, box->item, 1, ranks, sizeof(ranks));
    draw_rect(p, box, ranks[0] ? "#fff6d6" : "#ffffff", ranks[0] ? "#d9a400" : "#b9c0c8", 5);
    fprintf(p->to, "<text x=\"%.1f\" y=\"%.1f\" class=\"rank\"", box->x + box->w / 2, box->y + 18);
    svg_fit(p->to, ranks, RANK_PIXELS, room);
    fprintf(p->to, ">%s</text>\n", ranks);
}

static void draw_core(const struct picture *p, const struct box *box)
{
    if (box->item < 0)
        draw_rect(p, box, "#e3e5e8", "#c9cdd2", 5);
    else
        draw_ranks(p, box);
    draw_words(p, box->x + box->w / 2, box->y + box->h - 6, "small", box->label);
}

static void draw_device(const struct picture *p, const struct box *box)
{
    static const char *const fills[] = {"#d8f0c8", "#dce8fa", "#ece0f8"};
    static const char *const strokes[] = {"#5b9a32", "#4a7fc1", "#8a5cc2"};
    const struct topology_device *device = topology_device_at(p->topology, box->item);

    draw_rect(p, box, fills[device->kind], strokes[device->kind], 8);
    draw_words(p, box->x + box->w / 2, box->y + 17, "device", box->label);
    draw_words(p, box->x + box->w / 2, box->y + 32, "small", box->detail);
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
        draw_words(p, box->x + BOXES_INDENT, box->y + 15,
                   box->kind == BOX_PACKAGE ? "heading" : "title", box->label);
    }
}

/* ---- Rings ----------------------------------------------------------------------------------- */

/* Finds where the line from the middle of `box` towards (x, y) leaves it. */
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
 * readable. True: it is drawn in this pass.
 */
static bool arrow(const struct picture *p, const struct box *from, const struct box *to,
                  int distance)
{
    double ax, ay, bx, by;
    double fx = from->x + from->w / 2, fy = from->y + from->h / 2;
    double tx = to->x + to->w / 2, ty = to->y + to->h / 2;
    double length = sqrt((tx - fx) * (tx - fx) + (ty - fy) * (ty - fy));
    double bow = length < 1.6 * from->w ? 0 : 0.14;
    double mx = (fx + tx) / 2 + bow * (ty - fy), my = (fy + ty) / 2 - bow * (tx - fx);

    if (from == to || (bow > 0) != p->bows)
        return false;
    border(from, mx, my, &ax, &ay);
    border(to, mx, my, &bx, &by);
    fprintf(p->to,
            "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"%s\" opacity=\"%s\" marker-end=\"url(#head%d)\"/>\n",
            ax, ay, mx, my, bx, by, svg_colour(distance), bow > 0 ? "2.2" : "2",
            bow > 0 ? "0.8" : "1", distance);
    return true;
}

static void draw_rank_ring(struct picture *p)
{
    topology_ring(p->ranks, topology_distance_of_places, p->places, p->order);
    for (int i = 0; i < p->ranks && p->ranks > 1; i++) {
        int from = p->order[i], to = p->order[(i + 1) % p->ranks];
        int distance = topology_place_distance(&p->places[from], &p->places[to]);

        if (arrow(p, boxes_find(&p->boxes, BOX_CORE, p->places[from].core),
                  boxes_find(&p->boxes, BOX_CORE, p->places[to].core), distance))
            p->drawn.places |= 1u << distance;
    }
}

static void draw_gpu_ring(struct picture *p, int gpus)
{
    topology_ring(gpus, topology_distance_of_devices, p->topology, p->order);
    for (int i = 0; i < gpus && gpus > 1; i++) {
        int from = p->order[i], to = p->order[(i + 1) % gpus];
        int distance = topology_distance_of_devices(p->topology, from, to);

        if (arrow(p, boxes_find(&p->boxes, BOX_DEVICE, from), boxes_find(&p->boxes, BOX_DEVICE, to),
                  distance))
            p->drawn.devices |= 1u << distance;
    }
}

/* ---- The page -------------------------------------------------------------------------------- */

/* The page reaches beyond everything that is drawn on it. */
static void widen(struct picture *p, double right)
{
    if (right + MARGIN > p->w)
        p->w = right + MARGIN;
}

static void draw_title(struct picture *p)
{
    char text[96];
    int cores = p->topology->cores;

    snprintf(text, sizeof(text), "%d rank%s on %d usable core%s%s", p->ranks,
             p->ranks == 1 ? "" : "s", cores, cores == 1 ? "" : "s",
             p->topology->recorded ? " of a recorded machine" : "");
    fprintf(p->to, "<text x=\"%d\" y=\"28\" class=\"page\">%s</text>\n", MARGIN, text);
    widen(p, MARGIN + boxes_text_width(text, PAGE_PIXELS, true));
}

static bool draw_tree(struct picture *p, const struct svg_tree *shape)
{
    double w, h;

    topology_tree(shape->count, shape->distance, shape->context, p->order);
    if (!svg_tree_draw(shape, MARGIN, p->h + TREE_GAP / 2, &w, &h, p->to))
        return false;
    p->h += h + TREE_GAP / 2;
    widen(p, MARGIN + w);
    return true;
}

static bool draw_all(struct picture *p)
{
    struct box *box = p->boxes.box;
    int gpus = topology_gpus(p->topology);
    struct svg_tree ranks = {"tree over the ranks",       p->ranks,  p->order,
                             topology_distance_of_places, p->places, &p->drawn.places};
    struct svg_tree devices = {"tree over the GPUs",         gpus,        p->order,
                               topology_distance_of_devices, p->topology, &p->drawn.devices};

    for (int i = 0; i < p->boxes.count; i++) {
        box[i].x += MARGIN;
        box[i].y += HEADER + 6;
    }
    snprintf(box[0].label, sizeof(box[0].label), "machine");
    p->w = box[0].w + 2 * MARGIN;
    p->h = HEADER + box[0].h + 6;
    draw_title(p);
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

/* The text that `part` writes, in memory; NULL: out of memory. */
static char *written_by(struct picture *p, bool (*part)(struct picture *p))
{
    char *text = NULL;
    size_t length;
    bool good;

    p->to = open_memstream(&text, &length);
    if (!p->to)
        return NULL;
    good = part(p);
    good &= !fclose(p->to);
    if (good)
        return text;
    free(text);
    return NULL;
}

static bool draw_head(struct picture *p)
{
    widen(p, svg_head_draw(&p->drawn, MARGIN, p->to));
    return true;
}

/* The size of the page, and what its legend explains, are known at the end of its body only. */
static rondo_result draw(struct picture *p, FILE *file)
{
    char *body = written_by(p, draw_all);
    char *head = body ? written_by(p, draw_head) : NULL;

    if (head)
        fprintf(file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\">\n%s%s</svg>\n",
                p->w, p->h + MARGIN, p->w, p->h + MARGIN, head, body);
    free(body);
    free(head);
    return head ? RONDO_OK
                : rondo_fail(RONDO_ERROR_MEMORY, "out of memory while drawing the machine");
}

static rondo_result draw_to(struct picture *p, const char *name)
{
    FILE *file = descriptor_stream(name, "w");
    rondo_result result;
    int failed;

    if (!file)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot write the picture to %s", name);
    result = draw(p, file);
    failed = ferror(file);
    failed |= fclose(file); /* whose error comes last, so errno is of it */
    if (failed && !result)
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
