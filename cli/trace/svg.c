/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * svg.c - a job as a picture of fixed size, however many calls it made: for each rank what share of
 * its time it moved data, waited in calls, or was outside of them; and what calls took beside what
 * the cost model expects.
 */
#include "cli/trace/trace.h"

#include "cli/common/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 980,
    LEFT = 90,
    COLUMNS = 860, /* pixels of the time line */
    LANE = 22,
    LANE_GAP = 6,
    TOP = 70,
    MOST_LANES = 64,
    MOST_KINDS = 12,
    ROW = 20,
    ROW_LEFT = 420, /* where times of calls begin; left of it stand their names */
};

struct picture {
    FILE *to;
    double first, last; /* seconds */
    float *inside;      /* of the lane: seconds in calls in each column */
    float *moved;
    struct stretch *stretches;
};

static void write_text(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '>' || *text == '&')
            fprintf(to, "&#%d;", *text);
        else
            fputc(*text, to);
}

/* Adds a stretch of time to the columns that it covers. */
static void spread(const struct picture *picture, double begin, double end, float *columns)
{
    double each = (picture->last - picture->first) / COLUMNS;
    double from = (begin - picture->first) / each, to = (end - picture->first) / each;
    int last = (int)fmax(fmin(ceil(to), COLUMNS), 0);

    for (int i = (int)fmin(fmax(from, 0), last); i < last; i++)
        columns[i] += (float)(each * fmax(fmin(to, i + 1) - fmax(from, i), 0));
}

/* Writes a colour's part of the lane: columns with the same height are one rectangle. */
static void write_columns(const struct picture *picture, const float *seconds, const char *kind,
                          double bottom)
{
    double each = (picture->last - picture->first) / COLUMNS;

    for (int i = 0, end; i < COLUMNS; i = end) {
        int height = (int)lround(4 * LANE * fmin(seconds[i] / each, 1));

        for (end = i + 1; end < COLUMNS; end++)
            if ((int)lround(4 * LANE * fmin(seconds[end] / each, 1)) != height)
                break;
        if (height)
            fprintf(picture->to,
                    "<rect class=\"%s\" x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\"/>\n", kind,
                    LEFT + i, bottom - height / 4.0, end - i, height / 4.0);
    }
}

/* The time that a rank moved data covers, from below, that in which it was in calls. */
static void write_lane(const struct traced *traced, int file, const struct picture *picture)
{
    double top = TOP + file * (LANE + LANE_GAP);
    size_t count = traced_stretches(traced, file, picture->stretches);

    memset(picture->inside, 0, COLUMNS * sizeof(*picture->inside));
    memset(picture->moved, 0, COLUMNS * sizeof(*picture->moved));
    for (size_t i = 0; i < count; i++)
        spread(picture, picture->stretches[i].begin, picture->stretches[i].end, picture->inside);
    for (uint32_t i = 0; i < traced->step_count; i++) {
        const struct traced_step *step = &traced->steps[i];

        if (traced->calls[step->call].file == file && step_moves(step))
            spread(picture, step->begin, step->end, picture->moved);
    }
    fprintf(picture->to,
            "<text x=\"%d\" y=\"%.0f\" class=\"left\">rank %d</text>\n<rect class=\"outside\" "
            "x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n",
            LEFT - 8, top + LANE * 0.7, traced_rank(&traced->files[file]), LEFT, top, COLUMNS,
            LANE);
    write_columns(picture, picture->inside, "waits", top + LANE);
    write_columns(picture, picture->moved, "moves", top + LANE);
}

static void write_axis(const struct picture *picture, double y)
{
    enum { TICKS = 5 };

    for (int i = 0; i < TICKS; i++) {
        double x = LEFT + (double)COLUMNS * i / (TICKS - 1);

        fprintf(picture->to,
                "<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>\n<text x=\"%.0f\" "
                "y=\"%.0f\" class=\"%s\">%s</text>\n",
                x, y, x, y + 5, x, y + 20, i == TICKS - 1 ? "left" : "middle",
                traced_seconds((picture->last - picture->first) * i / (TICKS - 1)));
    }
}

/* ---- Calls beside what is expected of them --------------------------------------------------- */

struct scale {
    double least, most;
};

/* Times are compared by their ratio. */
static double place(struct scale scale, double seconds)
{
    double room = LEFT + COLUMNS - ROW_LEFT - 60;

    return ROW_LEFT + room * log(seconds / scale.least) / log(scale.most / scale.least);
}

static double mean_of(const struct traced_kind *kind)
{
    return kind->calls ? kind->seconds / (double)kind->calls : 0;
}

static struct scale scale_of(const struct traced_kind *kinds, int count)
{
    struct scale scale = {INFINITY, 0};

    for (int i = 0; i < count; i++) {
        double shortest = kinds[i].shortest, predicted = kinds[i].predicted;

        scale.least = fmin(scale.least, fmin(shortest, predicted > 0 ? predicted : shortest));
        scale.most = fmax(scale.most, fmax(mean_of(&kinds[i]), predicted));
    }
    return (struct scale){scale.least / 1.5, scale.most * 1.5};
}

static void write_kind(const struct picture *picture, const struct traced_kind *kind,
                       struct scale scale, double y)
{
    double shortest = place(scale, kind->shortest), mean = place(scale, mean_of(kind));

    fprintf(picture->to, "<text x=\"%d\" y=\"%.0f\" class=\"left\">", ROW_LEFT - 12, y + 4);
    write_text(picture->to, kind->name);
    fprintf(picture->to,
            "</text>\n<rect class=\"measured\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
            "height=\"8\"><title>%s to %s</title></rect>\n",
            shortest, y - 4, fmax(mean - shortest, 2), traced_seconds(kind->shortest),
            traced_seconds(mean_of(kind)));
    if (kind->predicted > 0)
        fprintf(picture->to,
                "<circle class=\"predicted\" cx=\"%.1f\" cy=\"%.0f\" r=\"4.5\"><title>"
                "%s</title></circle>\n",
                place(scale, kind->predicted), y, traced_seconds(kind->predicted));
    fprintf(picture->to, "<text x=\"%.1f\" y=\"%.0f\">%s</text>\n",
            fmax(mean, kind->predicted > 0 ? place(scale, kind->predicted) : 0) + 10, y + 4,
            traced_seconds(mean_of(kind)));
}

/* Those that ended, which took most together. Returns how many there are. */
static int kinds_that_ended(struct traced_kind *kinds, int count)
{
    int ended = 0;

    for (int i = 0; i < count && ended < MOST_KINDS; i++)
        if (mean_of(&kinds[i]) > 0)
            kinds[ended++] = kinds[i];
    return ended;
}

static void write_kinds(const struct picture *picture, const struct traced_kind *kinds, int count,
                        double top)
{
    struct scale scale = scale_of(kinds, count);

    fprintf(picture->to,
            "<text x=\"%d\" y=\"%.0f\" class=\"head\">Time of a call</text>\n<rect "
            "class=\"measured\" x=\"%d\" y=\"%.0f\" width=\"24\" height=\"8\"/><text x=\"%d\" "
            "y=\"%.0f\">from the shortest to the mean</text>\n<circle class=\"predicted\" "
            "cx=\"%d\" cy=\"%.0f\" r=\"4.5\"/><text x=\"%d\" y=\"%.0f\">predicted by the cost "
            "model</text>\n",
            LEFT, top, ROW_LEFT, top - 8, ROW_LEFT + 30, top, ROW_LEFT + 240, top - 4,
            ROW_LEFT + 250, top);
    for (int i = 0; i < count; i++)
        write_kind(picture, &kinds[i], scale, top + ROW * (i + 1.2));
}

/* ---- The picture ----------------------------------------------------------------------------- */

static void write_head(const struct traced *traced, const struct picture *picture, int height)
{
    FILE *to = picture->to;

    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<title>A traced job of %d "
            "processes</title>\n",
            WIDTH, height, WIDTH, traced->file_count);
    fputs("<style>svg { background: #fff; } text { fill: #1c2024; } .left { text-anchor: end; } "
          ".middle { text-anchor: middle; } .head { font-weight: 600; }\n"
          "line { stroke: #8a939c; } .outside { fill: #e3e7eb; } .waits { fill: #e8a33d; } "
          ".moves, .measured { fill: #2563a8; }\n"
          ".predicted { fill: #fff; stroke: #1c2024; stroke-width: 1.5; }\n"
          "@media (prefers-color-scheme: dark) { svg { background: #14171a; } text { fill: "
          "#e8eaed; } .outside { fill: #2c3238; }\n"
          "  .moves, .measured { fill: #6aa9e9; } .predicted { fill: #14171a; stroke: #e8eaed; } "
          "}</style>\n",
          to);
    fprintf(to, "<text x=\"%d\" y=\"24\" class=\"head\">", LEFT);
    write_text(to, traced->files[0].page->header.program);
    fprintf(to, ": %d process%s on %d machine%s</text>\n", traced->file_count,
            traced->file_count > 1 ? "es" : "", traced->machines, traced->machines > 1 ? "s" : "");
}

static void write_legend(const struct picture *picture)
{
    static const struct {
        const char *kind, *text;
    } entries[] = {
        {"moves", "moves data"}, {"waits", "waits in a call"}, {"outside", "outside of calls"}};

    for (int i = 0; i < 3; i++)
        fprintf(picture->to,
                "<rect class=\"%s\" x=\"%d\" y=\"42\" width=\"12\" height=\"12\"/><text x=\"%d\" "
                "y=\"52\">%s</text>\n",
                entries[i].kind, LEFT + i * 130, LEFT + i * 130 + 18, entries[i].text);
}

static void draw(const struct traced *traced, struct picture *picture)
{
    int lanes = traced->file_count < MOST_LANES ? traced->file_count : MOST_LANES, count;
    struct traced_kind *kinds = traced_kinds(traced, &count);
    int height = TOP;

    traced_moments(traced, &picture->first, &picture->last);
    if (picture->last <= picture->first)
        lanes = 0; /* there are sums alone */
    count = kinds_that_ended(kinds, count);
    height += lanes * (LANE + LANE_GAP) + (lanes ? 60 : 0);
    write_head(traced, picture, height + (count + 1) * ROW + 20);
    if (lanes)
        write_legend(picture);
    for (int i = 0; i < lanes; i++)
        write_lane(traced, i, picture);
    if (lanes)
        write_axis(picture, TOP + lanes * (LANE + LANE_GAP));
    if (lanes < traced->file_count && lanes)
        fprintf(picture->to, "<text x=\"%d\" y=\"52\" class=\"left\">the first %d ranks</text>\n",
                LEFT + COLUMNS, lanes);
    write_kinds(picture, kinds, count, height);
    fputs("</svg>\n", picture->to);
    free(kinds);
}

bool traced_svg(const struct traced *traced, const char *file)
{
    struct picture picture = {
        .inside = calloc(COLUMNS, sizeof(*picture.inside)),
        .moved = calloc(COLUMNS, sizeof(*picture.moved)),
        .stretches = calloc((size_t)traced->call_count + 1, sizeof(*picture.stretches))};

    errno = ENOMEM;
    if (picture.inside && picture.moved && picture.stretches)
        picture.to = output_open(file);
    if (picture.to)
        draw(traced, &picture);
    free(picture.inside);
    free(picture.moved);
    free(picture.stretches);
    if (picture.to && output_close(picture.to))
        return true;
    fprintf(stderr, "rondo trace: cannot write %s: %s\n", file, strerror(errno));
    return false;
}
