/* SPDX-License-Identifier: BSD-3-Clause */
/* chart.c - draws what --predict says, and beside it what `rondo bench --json` has measured. */
#include "cli/common/gnuplot.h"
#include "cli/explain/predict.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Measured -------------------------------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text ? text : "";
}

/* A row is about what has run; where nobody knows that, about what was asked for. */
static const struct algorithm *algorithm_of(const struct prediction *prediction, const json_t *row)
{
    const struct subject *subject = prediction->subject;
    const char *ran = text_of(row, "ran");

    if (strcmp(text_of(row, "library"), "rondo") ||
        strcmp(text_of(row, "collective"), rondo_collective_name(subject->collective)) ||
        json_integer_value(json_object_get(row, "ranks")) != subject->ranks ||
        !json_is_number(json_object_get(row, "median_us")))
        return NULL;
    for (int i = 0; i < prediction->count; i++)
        if (!strcmp(prediction->algorithms[i]->name, *ran ? ran : text_of(row, "algorithm")))
            return prediction->algorithms[i];
    return NULL;
}

/* The sizes of the table become those that were measured. */
static void add_size(struct prediction *prediction, double bytes)
{
    int at = prediction->size_count;

    for (int i = 0; i < prediction->size_count; i++)
        if (prediction->sizes[i] == bytes)
            return;
    if (at == PREDICT_SIZES || bytes <= 0)
        return;
    for (; at > 0 && prediction->sizes[at - 1] > bytes; at--)
        prediction->sizes[at] = prediction->sizes[at - 1];
    prediction->sizes[at] = bytes;
    prediction->size_count++;
}

bool measured_read(struct prediction *prediction, const char *path)
{
    json_error_t error;
    json_t *all = json_load_file(path, 0, &error);
    json_t *rows = json_object_get(all, "rows");

    if (all)
        prediction->points = calloc(json_array_size(rows) + 1, sizeof(*prediction->points));
    if (prediction->points)
        prediction->size_count = 0;
    for (size_t i = 0; prediction->points && i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        struct predict_point point = {.algorithm = algorithm_of(prediction, row),
                                      .bytes = json_number_value(json_object_get(row, "bytes")),
                                      .microseconds =
                                          json_number_value(json_object_get(row, "median_us"))};

        if (!point.algorithm)
            continue;
        prediction->points[prediction->point_count++] = point;
        add_size(prediction, point.bytes);
    }
    if (!all)
        fprintf(stderr, "rondo explain: %s is no result of `rondo bench --json`: %s (line %d)\n",
                path, error.text, error.line);
    else if (!prediction->point_count)
        fprintf(stderr,
                "rondo explain: %s has no times of %s over %d ranks by an algorithm that is "
                "predicted: make it by `rondo bench %s -n %d --algo all --json %s`\n",
                path, rondo_collective_name(prediction->subject->collective),
                prediction->subject->ranks, rondo_collective_name(prediction->subject->collective),
                prediction->subject->ranks, path);
    json_decref(all);
    return prediction->point_count > 0;
}

/* ---- Drawn ----------------------------------------------------------------------------------- */

static bool is_measured(const struct prediction *prediction, int i)
{
    for (int p = 0; p < prediction->point_count; p++)
        if (prediction->points[p].algorithm == prediction->algorithms[i])
            return true;
    return false;
}

static void print_script(const void *what, FILE *script)
{
    struct prediction *prediction = *(struct prediction *const *)what;
    double last = prediction->sizes[prediction->size_count - 1];

    fprintf(
        script,
        "set terminal svg size 900,560 font \",12\"\nset logscale x 2\nset logscale y\n"
        "set key outside right top\nset grid\nset xlabel \"bytes\"\nset ylabel \"microseconds\"\n"
        "set format x \"%%.0b%%B\"\n"
        "set title \"%s over %d ranks: predicted%s\" noenhanced\nplot ",
        rondo_collective_name(prediction->subject->collective), prediction->subject->ranks,
        prediction->measured ? " (lines), measured (points)" : "");
    for (int i = 0; i < prediction->count; i++) {
        fprintf(script, "%s'-' with lines linewidth 2 linecolor %d title \"%s\" noenhanced",
                i ? ", " : "", i + 1, prediction->algorithms[i]->name);
        if (is_measured(prediction, i))
            fprintf(script, ", '-' with points pointtype %d linecolor %d notitle", i + 1, i + 1);
    }
    fprintf(script, "\n");
    for (int i = 0; i < prediction->count; i++) {
        for (double bytes = prediction->sizes[0]; bytes < 1.4 * last; bytes *= M_SQRT2)
            fprintf(script, "%.0f %.9g\n", fmin(bytes, last),
                    1e6 * predict_seconds(prediction, i, fmin(bytes, last)));
        fprintf(script, "e\n");
        for (int p = 0; p < prediction->point_count; p++)
            if (prediction->points[p].algorithm == prediction->algorithms[i])
                fprintf(script, "%.0f %.9g\n", prediction->points[p].bytes,
                        prediction->points[p].microseconds);
        if (is_measured(prediction, i))
            fprintf(script, "e\n");
    }
}

bool prediction_plot(struct prediction *prediction, const char *path)
{
    char sentence[GNUPLOT_SENTENCE];

    if (!gnuplot_write("--plot", path, print_script, &prediction, sentence))
        return true;
    fprintf(stderr, "rondo explain: %s\n", sentence);
    return false;
}
