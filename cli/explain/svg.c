/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg.c - `rondo explain --svg`: ranks on a circle with the chunks that travel between them, and a
 * table of what each rank has, where a cell has a bar for each rank whose share is in it.
 *
 * Without animation, as in a printout, or where a reader wants no motion, the end is shown.
 */
#include "cli/explain/svg.h"

#include "base/collective.h"
#include "base/fail.h"
#include "cli/explain/drawing.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 640, CIRCLE = 300, ROW = 24, TABLE = 330, TOP = 44, NEVER = 1 << 30 };

struct picture {
    struct drawing drawing;
    FILE *to;
    int round;  /* -1: animated */
    double dur; /* seconds of a turn */
    int height;
    int columns; /* items that exist */
};

/* A part of the picture is seen from a time of a turn on, or in the frames from a round on. */
struct moment {
    double time; /* seconds since the call began, before its end */
    int level;
};

static const struct verify_machine *machine_of(const struct picture *picture)
{
    return &picture->drawing.record.machine;
}

static int ranks_of(const struct picture *picture)
{
    return machine_of(picture)->ranks;
}

/* The last tenth of a turn shows the end. */
static double part(const struct picture *picture, double time)
{
    double end = picture->drawing.times.end;

    return end > 0 ? 0.9 * time / end : 0;
}

static double place_x(const struct picture *picture, int rank)
{
    return CIRCLE / 2.0 + 0.36 * CIRCLE * sin(2 * M_PI * rank / ranks_of(picture));
}

static double place_y(const struct picture *picture, int rank)
{
    return TOP + CIRCLE / 2.0 - 0.36 * CIRCLE * cos(2 * M_PI * rank / ranks_of(picture));
}

/* ---- Parts that appear ----------------------------------------------------------------------- */

/* Writes a rectangle that is seen from a moment on; `shape` is its attributes. */
static void write_appearing(const struct picture *picture, const char *kind, const char *shape,
                            struct moment when)
{
    if (when.level == NEVER || (picture->round >= 0 && when.level > picture->round))
        return;
    if (when.level == 0 || picture->round >= 0) {
        fprintf(picture->to, "<rect class=\"%s\" %s/>\n", kind, shape);
        return;
    }
    fprintf(
        picture->to,
        "<rect class=\"on %s\" %s><animate attributeName=\"opacity\" calcMode=\"discrete\" "
        "values=\"0;1\" keyTimes=\"0;%.4f\" dur=\"%.1fs\" repeatCount=\"indefinite\"/></rect>\n",
        kind, shape, part(picture, when.time), picture->dur);
}

static int hue(const struct picture *picture, int rank)
{
    return 360 * rank / ranks_of(picture);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* A cell shows each rank's share, and that the result is complete. */
struct cell {
    struct moment share[64], done;
    int best; /* ranks in the largest sum so far */
};

static bool has(const struct picture *picture, verify_value value, int rank)
{
    return value_has_rank(&machine_of(picture)->values, value, rank);
}

static void take_value(const struct picture *picture, struct cell *cell, verify_value value,
                       struct moment when)
{
    int count = 0;

    for (int r = 0; r < ranks_of(picture); r++)
        count += has(picture, value, r);
    for (int r = 0; r < ranks_of(picture) && count > cell->best; r++)
        if (has(picture, value, r) && when.time < cell->share[r].time)
            cell->share[r] = when;
    cell->best = count > cell->best ? count : cell->best;
    if ((value & VALUE_FINISHED) && when.time < cell->done.time)
        cell->done = when;
}

static struct cell find_cell(const struct picture *picture, int rank, uint32_t item)
{
    const struct explain_record *record = &picture->drawing.record;
    const struct explain_hold *holds = record->holds.items;
    struct moment never = {INFINITY, NEVER};
    struct cell cell = {.done = never};
    int owner = (int)(item / machine_of(picture)->values.positions);

    for (int r = 0; r < ranks_of(picture); r++)
        cell.share[r] = never;
    if (drawing_owns(&picture->drawing, rank, item))
        cell.share[machine_of(picture)->reduces ? rank : owner] = (struct moment){0, 0};
    for (size_t i = 0; i < record->holds.count; i++)
        if (holds[i].rank == rank && explain_item(&picture->drawing.page, holds[i].value) == item)
            take_value(picture, &cell, holds[i].value,
                       (struct moment){drawing_hold(&picture->drawing, &holds[i]), holds[i].level});
    return cell;
}

static void write_cell(const struct picture *picture, int rank, uint32_t item, int column)
{
    bool sums = machine_of(picture)->reduces;
    int ranks = ranks_of(picture), gets = drawing_gets(&picture->drawing, rank, item);
    double width = (double)(WIDTH - TABLE - 10) / picture->columns;
    double x = TABLE + column * width, bar = sums ? (width - 3) / ranks : width - 3;
    int y = TOP + (rank + 1) * ROW;
    struct cell cell = find_cell(picture, rank, item);
    char shape[200];

    fprintf(picture->to,
            "<rect class=\"empty\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"%s/>\n", x, y,
            width - 3, ROW - 4, gets ? "" : " opacity=\".35\"");
    for (int r = 0; r < ranks; r++) {
        snprintf(shape, sizeof(shape),
                 "x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"hsl(%d 60%% 50%%)\"",
                 x + (sums ? r * bar : 0), y, bar, ROW - 4, hue(picture, r));
        write_appearing(picture, "share", shape, cell.share[r]);
    }
    snprintf(shape, sizeof(shape), "fill=\"none\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"",
             x, y, width - 3, ROW - 4);
    if (sums)
        write_appearing(picture, "done", shape, cell.done);
}

static void write_table(const struct picture *picture)
{
    double width = (double)(WIDTH - TABLE - 10) / picture->columns;
    int column = 0;

    for (int r = 0; r < ranks_of(picture); r++)
        fprintf(picture->to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">r%d</text>\n", TABLE - 6,
                TOP + (r + 1) * ROW + 15, r);
    for (uint32_t i = 0; i < drawing_items(&picture->drawing); i++) {
        char name[64];

        if (!drawing_exists(&picture->drawing, i))
            continue;
        explain_name_item(&picture->drawing.page, i, name, sizeof(name));
        if (width > 30)
            fprintf(picture->to, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", TABLE + column * width,
                    TOP + 17, name);
        for (int r = 0; r < ranks_of(picture); r++)
            write_cell(picture, r, i, column);
        column++;
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Writes a small square in the colours of those whose shares it carries, around 0, 0; a message
 * without data, which only says that something has happened, is a ring that holds nothing. */
static void write_chunk(const struct picture *picture, const struct explain_message *message)
{
    const verify_value *values = picture->drawing.record.values.items;
    int shares = 0, drawn = 0;

    for (int r = 0; r < ranks_of(picture); r++)
        shares += message->count && has(picture, values[message->first], r);
    for (int r = 0; r < ranks_of(picture) && shares; r++)
        if (has(picture, values[message->first], r)) {
            fprintf(picture->to,
                    "<rect x=\"%.1f\" y=\"-8\" width=\"%.1f\" height=\"16\" "
                    "fill=\"hsl(%d 60%% 50%%)\"/>",
                    -8 + 16.0 * drawn / shares, 16.0 / shares, hue(picture, r));
            drawn++;
        }
    if (!shares)
        fputs("<circle class=\"flag\" r=\"4\"/>", picture->to);
}

static void write_flight(const struct picture *picture, const struct explain_message *message)
{
    struct drawing_flight flight = drawing_message(&picture->drawing, message);
    double from = part(picture, flight.filled), there = part(picture, flight.arrived),
           used = part(picture, flight.used);
    double ax = place_x(picture, message->from), ay = place_y(picture, message->from),
           bx = place_x(picture, message->to), by = place_y(picture, message->to);

    fprintf(picture->to,
            "<g class=\"move\" opacity=\"0\"><animate attributeName=\"opacity\" "
            "calcMode=\"discrete\" values=\"0;1;0\" keyTimes=\"0;%.4f;%.4f\" dur=\"%.1fs\" "
            "repeatCount=\"indefinite\"/>",
            from, used, picture->dur);
    fprintf(picture->to,
            "<animateTransform attributeName=\"transform\" type=\"translate\" "
            "values=\"%.1f,%.1f;%.1f,%.1f;%.1f,%.1f;%.1f,%.1f\" keyTimes=\"0;%.4f;%.4f;1\" "
            "dur=\"%.1fs\" repeatCount=\"indefinite\"/>",
            ax, ay, ax, ay, bx, by, bx, by, from, there, picture->dur);
    write_chunk(picture, message);
    fputs("</g>\n", picture->to);
}

/* Writes an arrow from circle to circle; the chunk is off its middle, so opposite ones differ. */
static void write_arrow(const struct picture *picture, const struct explain_message *message)
{
    double ax = place_x(picture, message->from), ay = place_y(picture, message->from);
    double dx = place_x(picture, message->to) - ax, dy = place_y(picture, message->to) - ay;
    double length = hypot(dx, dy), gap = length > 0 ? 20 / length : 0;

    fprintf(picture->to,
            "<line class=\"arrow\" marker-end=\"url(#head)\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
            "y2=\"%.1f\"/><g transform=\"translate(%.1f,%.1f)\">",
            ax + gap * dx, ay + gap * dy, ax + (1 - 1.4 * gap) * dx, ay + (1 - 1.4 * gap) * dy,
            ax + 0.4 * dx, ay + 0.4 * dy);
    write_chunk(picture, message);
    fputs("</g>\n", picture->to);
}

static void write_circle(const struct picture *picture)
{
    const struct explain_message *messages = picture->drawing.record.messages.items;
    size_t count = picture->drawing.record.messages.count;

    for (size_t i = 0; i < count; i++)
        if (picture->round < 0)
            fprintf(picture->to,
                    "<line class=\"edge\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                    place_x(picture, messages[i].from), place_y(picture, messages[i].from),
                    place_x(picture, messages[i].to), place_y(picture, messages[i].to));
    for (size_t i = 0; i < count; i++) {
        if (picture->round < 0)
            write_flight(picture, &messages[i]);
        else if (messages[i].level == picture->round)
            write_arrow(picture, &messages[i]);
    }
    for (int r = 0; r < ranks_of(picture); r++)
        fprintf(picture->to,
                "<circle class=\"node\" cx=\"%.1f\" cy=\"%.1f\" r=\"18\"/><text class=\"rank\" "
                "x=\"%.1f\" y=\"%.1f\">%d</text>\n",
                place_x(picture, r), place_y(picture, r), place_x(picture, r),
                place_y(picture, r) + 6, r);
}

/* ---- The picture ----------------------------------------------------------------------------- */

static void write_head(const struct picture *picture)
{
    const struct subject *subject = picture->drawing.subject;

    fprintf(picture->to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"14\">\n"
            "<title>%s by %s over %d ranks</title>\n<style>\n",
            WIDTH, picture->height, WIDTH, rondo_collective_name(subject->collective),
            subject->plans[0]->algorithm, subject->ranks);
    fputs("svg { background: #fff; } text { fill: #1c2024; } .rank { text-anchor: middle; "
          "font-weight: 600; }\n"
          ".edge { stroke: #c6ccd3; } .arrow { stroke: #5b646e; stroke-width: 2; } .node { fill: "
          "#fff; stroke: #1c2024; stroke-width: 1.5; }\n"
          ".flag { fill: #fff; stroke: #5b646e; stroke-width: 1.5; }\n"
          ".empty { fill: #e3e7eb; } .done { stroke: #116329; stroke-width: 2.5; } #head { fill: "
          "#5b646e; }\n"
          "@media (prefers-color-scheme: dark) { svg { background: #14171a; } text { fill: "
          "#e8eaed; } .edge { stroke: #454c54; }\n"
          "  .node { fill: #14171a; stroke: #e8eaed; } .flag { fill: #14171a; stroke: #a8b1ba; }\n"
          "  .empty { fill: #2c3238; } .done { stroke: "
          "#7ee297; } .arrow { stroke: #a8b1ba; } #head { fill: #a8b1ba; } }\n"
          "@media (prefers-reduced-motion: reduce), print { .move { display: none; } .on { "
          "opacity: 1 !important; } }\n</style>\n"
          "<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"8\" refY=\"5\" "
          "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0 10 5 0 "
          "10z\"/></marker></defs>\n",
          picture->to);
    fprintf(picture->to, "<text x=\"10\" y=\"24\" font-weight=\"600\">%s by %s, %d ranks",
            rondo_collective_name(subject->collective), subject->plans[0]->algorithm,
            subject->ranks);
    if (picture->round >= 0)
        fprintf(picture->to, ": after round %d of %d", picture->round,
                picture->drawing.record.levels);
    fputs("</text>\n", picture->to);
}

static rondo_result check(const struct picture *picture)
{
    if (ranks_of(picture) > EXPLAIN_FULL)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "A picture has up to %d ranks, this plan has %d: --html draws them all.",
                          EXPLAIN_FULL, ranks_of(picture));
    if (picture->round > picture->drawing.record.levels)
        return rondo_fail(RONDO_ERROR_INVALID, "There is no round %d: this plan has %d.",
                          picture->round, picture->drawing.record.levels);
    return RONDO_OK;
}

rondo_result subject_write_svg(const struct subject *subject, const struct explain_costs *costs,
                               int round, FILE *to)
{
    struct picture picture = {.to = to, .round = round};
    rondo_result result = drawing_open(&picture.drawing, subject, costs);
    int rows = TOP + ROW * (subject->ranks + 1) + 10;

    if (!result)
        result = check(&picture);
    if (!result) {
        picture.dur = 2 + 1.5 * picture.drawing.record.levels;
        picture.height = rows > TOP + CIRCLE ? rows : TOP + CIRCLE;
        for (uint32_t i = 0; i < drawing_items(&picture.drawing); i++)
            picture.columns += drawing_exists(&picture.drawing, i);
        write_head(&picture);
        write_circle(&picture);
        write_table(&picture);
        fputs("</svg>\n", to);
    }
    drawing_close(&picture.drawing);
    return result;
}
