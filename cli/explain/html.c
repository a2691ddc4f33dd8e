/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * html.c - `rondo explain --html`: what the machine of the verifier saw, as data in a page that
 * draws it. The page is page.html, which the build embeds; it has one line where the data go.
 *
 * Times are whole nanoseconds. A cell is an item of plan/explain/page.h; what is in it is the set
 * of ranks whose shares are summed there, as hexadecimal digits, by its number in `sets`.
 */
#include "cli/explain/html.h"

#include "base/collective.h"
#include "cli/explain/breaks.h"
#include "cli/explain/drawing.h"

#include <stdlib.h>
#include <string.h>

struct sets {
    char (*names)[17]; /* 64 ranks */
    size_t count, room;
};

struct writer {
    struct drawing drawing;
    struct sets sets;
    FILE *to;
};

static const struct verify_machine *machine_of(const struct writer *writer)
{
    return &writer->drawing.record.machine;
}

static double nanoseconds(double seconds)
{
    return seconds * 1e9;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void name_set(const struct writer *writer, verify_value value, char name[17])
{
    unsigned long long ranks = 0;

    for (int r = 0; r < machine_of(writer)->ranks; r++)
        if (value_has_rank(&machine_of(writer)->values, value, r))
            ranks |= 1ull << r;
    snprintf(name, 17, "%llx", ranks);
}

/* Returns twice the number of the set, and one more if the sum is finished; -1: no memory. */
static long number_of(struct writer *writer, verify_value value)
{
    struct sets *sets = &writer->sets;
    char name[17];
    size_t at = 0;

    name_set(writer, value, name);
    while (at < sets->count && strcmp(sets->names[at], name) != 0)
        at++;
    if (at == sets->room) {
        size_t room = sets->room ? 2 * sets->room : 64;
        void *moved = realloc(sets->names, room * sizeof(*sets->names));

        if (!moved)
            return -1;
        sets->names = moved;
        sets->room = room;
    }
    if (at == sets->count)
        memcpy(sets->names[sets->count++], name, sizeof(name));
    return 2 * (long)at + !!(value & VALUE_FINISHED);
}

static void write_value(struct writer *writer, verify_value value, const char *comma)
{
    fprintf(writer->to, "%s%u,%ld", comma, explain_item(&writer->drawing.page, value),
            number_of(writer, value));
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void write_names(const struct writer *writer)
{
    const char *comma = "";

    fputs("\"items\":{", writer->to);
    for (uint32_t i = 0; i < drawing_items(&writer->drawing); i++) {
        char name[64];

        if (!drawing_exists(&writer->drawing, i))
            continue;
        explain_name_item(&writer->drawing.page, i, name, sizeof(name));
        fprintf(writer->to, "%s\"%u\":\"%s\"", comma, i, name);
        comma = ",";
    }
    fputs("},\n", writer->to);
}

/* A list for each rank. */
static void write_cells(const struct writer *writer, const char *name,
                        bool (*has)(const struct drawing *, int, uint32_t))
{
    fprintf(writer->to, "\"%s\":[", name);
    for (int r = 0; r < machine_of(writer)->ranks; r++) {
        const char *comma = "";

        fputs(r ? ",[" : "[", writer->to);
        for (uint32_t i = 0; i < drawing_items(&writer->drawing); i++)
            if (drawing_exists(&writer->drawing, i) && has(&writer->drawing, r, i)) {
                fprintf(writer->to, "%s%u", comma, i);
                comma = ",";
            }
        fputs("]", writer->to);
    }
    fputs("],\n", writer->to);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void write_messages(struct writer *writer)
{
    const struct explain_message *messages = writer->drawing.record.messages.items;
    const verify_value *values = writer->drawing.record.values.items;

    fputs("\"messages\":[", writer->to);
    for (size_t i = 0; i < writer->drawing.record.messages.count; i++) {
        const struct explain_message *message = &messages[i];
        struct drawing_flight flight = drawing_message(&writer->drawing, message);

        fprintf(writer->to, "%s[%d,%d,%d,%.0f,%.0f,%.0f,%d,[", i ? ",\n" : "", message->from,
                message->to, message->level, nanoseconds(flight.filled),
                nanoseconds(flight.arrived), nanoseconds(flight.used), message->use);
        for (uint32_t v = 0; v < message->count; v++)
            write_value(writer, values[message->first + v], v ? "," : "");
        fputs("]]", writer->to);
    }
    fputs("],\n", writer->to);
}

/* Values that come into buffers; those of one step are one event. */
static void write_holds(struct writer *writer)
{
    const struct explain_hold *holds = writer->drawing.record.holds.items;
    const char *open = "\n[";

    fputs("\"holds\":[", writer->to);
    for (size_t i = 0; i < writer->drawing.record.holds.count; i++) {
        const struct explain_hold *hold = &holds[i], *last = i ? &holds[i - 1] : NULL;

        if (!last || last->rank != hold->rank || last->by != hold->by || last->step != hold->step) {
            fprintf(writer->to, "%s%d,%.0f,[", open, hold->rank,
                    nanoseconds(drawing_hold(&writer->drawing, hold)));
            open = "]],\n[";
            write_value(writer, hold->value, "");
        } else {
            write_value(writer, hold->value, ",");
        }
    }
    fputs(writer->drawing.record.holds.count ? "]]],\n" : "],\n", writer->to);
}

/* ---- The page -------------------------------------------------------------------------------- */

static void write_head(const struct writer *writer)
{
    const struct subject *subject = writer->drawing.subject;
    const char *formula = subject->algorithm->forms[subject->collective].formula;
    const struct grouping *groups = subject->groups;

    fprintf(writer->to,
            "{\"name\":\"%s\",\"collective\":\"%s\",\"summary\":\"%s\",\"formula\":\"%s\",\n"
            "\"ranks\":%d,\"root\":%d,\"rounds\":%d,\"count\":%.0f,\"reduces\":%s,\"end\":%.0f,"
            "\"groups\":[",
            subject->plans[0]->algorithm, rondo_collective_name(subject->collective),
            subject->algorithm->summary, formula ? formula : "", subject->ranks, subject->root,
            writer->drawing.record.levels, subject->count,
            machine_of(writer)->reduces ? "true" : "false", nanoseconds(writer->drawing.times.end));
    for (int r = 0; groups && r < subject->ranks; r++)
        fprintf(writer->to, "%s%d", r ? "," : "", groups->group_of[r]);
    fputs("],\n", writer->to);
}

static void write_sets(const struct writer *writer)
{
    fputs("\"sets\":[", writer->to);
    for (size_t i = 0; i < writer->sets.count; i++)
        fprintf(writer->to, "%s\"%s\"", i ? "," : "", writer->sets.names[i]);
    fputs("]}", writer->to);
}

static rondo_result write_subject(const struct subject *subject, const struct explain_costs *costs,
                                  FILE *to)
{
    struct writer writer = {.to = to};
    rondo_result result = drawing_open(&writer.drawing, subject, costs);

    if (!result) {
        write_head(&writer);
        write_names(&writer);
        write_cells(&writer, "owns", drawing_owns);
        write_cells(&writer, "gets", drawing_gets);
        write_messages(&writer);
        write_holds(&writer);
        result = subject_write_breaks(subject, to);
        write_sets(&writer);
    }
    free(writer.sets.names);
    drawing_close(&writer.drawing);
    return result;
}

rondo_result subject_write_html(const struct subject *subjects, int count,
                                const struct explain_costs *costs, FILE *to)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; explain_html_page[i]; i++) {
        if (strcmp(explain_html_page[i], "/* data */\n") != 0) {
            fputs(explain_html_page[i], to);
            continue;
        }
        for (int s = 0; s < count && !result; s++) {
            fputs(s ? ",\n" : "[", to);
            result = write_subject(&subjects[s], costs, to);
        }
        fputs("]\n", to);
    }
    return result;
}
