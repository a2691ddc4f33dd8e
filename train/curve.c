/* SPDX-License-Identifier: BSD-3-Clause */
/* curve.c - see curve.h. */
#include "train/curve.h"

#include "train/common/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct curve {
    struct curve_point *points;
    size_t count, room;
    const char *path;
    FILE *file;
};

static rondo_result keep(struct curve *curve, const struct curve_point *point)
{
    if (curve->count == curve->room) {
        size_t room = curve->room ? 2 * curve->room : 1024;
        struct curve_point *points = realloc(curve->points, room * sizeof(*points));

        if (!points)
            return say_memory();
        curve->points = points;
        curve->room = room;
    }
    curve->points[curve->count++] = *point;
    return RONDO_OK;
}

/* An empty field is a figure that is not there. */
static bool read_line(char *line, struct curve_point *ret_point)
{
    double *fields[] = {&ret_point->loss,         &ret_point->rate,          &ret_point->norm,
                        &ret_point->held_loss,    &ret_point->held_accuracy, &ret_point->seconds,
                        &ret_point->tokens_per_s, &ret_point->computing,     &ret_point->hidden};
    char *at;

    if (!strchr(line, '\n')) /* cut off when the job was killed */
        return false;
    ret_point->step = strtoull(line, &at, 10);
    if (at == line)
        return false;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        char *end;

        if (*at++ != ',')
            return false;
        *fields[i] = strtod(at, &end);
        if (end == at)
            *fields[i] = -1;
        at = end;
    }
    return *at == '\n';
}

/* Prints the value, or nothing if it is negative. */
static void print_optional(FILE *to, const char *format, double value)
{
    fputc(',', to);
    if (value >= 0)
        fprintf(to, format, value);
}

static void print_line(const struct curve_point *point, FILE *to)
{
    fprintf(to, "%" PRIu64 ",%.9g,%.9g,%.9g", point->step, point->loss, point->rate, point->norm);
    print_optional(to, "%.9g", point->held_loss);
    print_optional(to, "%.9g", point->held_accuracy);
    fprintf(to, ",%.6f,%.0f,%.4f", point->seconds, point->tokens_per_s, point->computing);
    print_optional(to, "%.4f", point->hidden);
    fputc('\n', to);
}

static rondo_result read_old(struct curve *curve, uint64_t from)
{
    FILE *file = fopen(curve->path, "re");
    rondo_result result = RONDO_OK;
    char line[512];

    if (!file)
        return RONDO_OK; /* it is begun now */
    while (!result && fgets(line, sizeof(line), file)) {
        struct curve_point point;

        if (read_line(line, &point) && point.step <= from)
            result = keep(curve, &point);
    }
    fclose(file);
    return result;
}

static rondo_result cannot_write(const struct curve *curve)
{
    return say(RONDO_ERROR_SYSTEM, "cannot write %s: %s", curve->path, strerror(errno));
}

rondo_result curve_open(const char *path, uint64_t from, struct curve **ret_curve)
{
    struct curve *curve = calloc(1, sizeof(*curve));
    rondo_result result = RONDO_OK;

    if (!curve)
        return say_memory();
    curve->path = path;
    if (path && from > 0)
        result = read_old(curve, from);
    if (!result && path) {
        curve->file = fopen(path, "we");
        if (curve->file) {
            fprintf(curve->file, "%s\n", CURVE_HEADER);
            for (size_t i = 0; i < curve->count; i++)
                print_line(&curve->points[i], curve->file);
        }
        if (!curve->file || fflush(curve->file))
            result = cannot_write(curve);
    }
    if (result)
        curve_close(curve);
    else
        *ret_curve = curve;
    return result;
}

void curve_close(struct curve *curve)
{
    if (!curve)
        return;
    if (curve->file)
        fclose(curve->file);
    free(curve->points);
    free(curve);
}

rondo_result curve_add(struct curve *curve, const struct curve_point *point)
{
    rondo_result result = keep(curve, point);

    if (result || !curve->file)
        return result;
    print_line(point, curve->file);
    return fflush(curve->file) ? cannot_write(curve) : RONDO_OK;
}

size_t curve_count(const struct curve *curve)
{
    return curve->count;
}

const struct curve_point *curve_at(const struct curve *curve, size_t index)
{
    return &curve->points[index];
}
