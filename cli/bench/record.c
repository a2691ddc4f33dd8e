/* SPDX-License-Identifier: BSD-3-Clause */
/* record.c - the fields of a record, and the ways to write it. */
#include "cli/bench/record.h"

#include "cli/common/output.h"
#include "cli/common/gnuplot.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

enum { CELL_MAX = 128 };

enum type { TEXT, WHOLE, FLAG, REAL };

/* The member of struct bench_record of the same name. */
struct field {
    const char *name;
    enum type type;
    size_t offset;
    int places; /* of a real in CSV */
};

/* clang-format off */
#define FIELD(name, places) \
    {#name, _Generic(((struct bench_record *)0)->name, const char *: TEXT, long long: WHOLE, \
                     bool: FLAG, double: REAL), offsetof(struct bench_record, name), places}

static const struct field fields[] = {
    FIELD(library, 0), FIELD(collective, 0), FIELD(algorithm, 0), FIELD(dtype, 0), FIELD(op, 0),
    FIELD(memory, 0), FIELD(level, 0), FIELD(best_peer, 0), FIELD(faster, 0), FIELD(ranks, 0),
    FIELD(root, 0), FIELD(sources, 0), FIELD(bytes, 0), FIELD(count, 0), FIELD(wrong, 0),
    FIELD(in_place, 0), FIELD(available, 0), FIELD(median_us, 4), FIELD(min_us, 4),
    FIELD(algbw_GBps, 6), FIELD(busbw_GBps, 6), FIELD(ratio, 4), FIELD(GBps, 4),
    FIELD(copy_GBps, 4), FIELD(percent_of_copy, 2), FIELD(tokens_per_s, 1), FIELD(speed_up, 4),
    FIELD(efficiency, 4), FIELD(step_s, 6), FIELD(waiting, 4), FIELD(hidden, 4),
    FIELD(bytes_per_step, 0), FIELD(p90_us, 4), FIELD(p95_us, 4), FIELD(p99_us, 4),
    FIELD(max_us, 4), FIELD(spread, 4),
    FIELD(rank_spread, 4), FIELD(ratio_low, 4), FIELD(ratio_high, 4), FIELD(ratio_confidence, 4),
    FIELD(steady, 0), FIELD(settings, 0), FIELD(trace, 0), FIELD(communicators, 0),
    FIELD(buffers, 0), FIELD(messages_per_s, 0), FIELD(pure_us, 4), FIELD(compute_us, 4),
    FIELD(overlap, 4), FIELD(rank_bytes, 0), FIELD(communicator_bytes, 0), FIELD(ran, 0),
    FIELD(predicted_us, 4),
    FIELD(version, 0), FIELD(processor, 0), FIELD(processors, 0), FIELD(cores_per_socket, 0),
    FIELD(architecture, 0), FIELD(system, 0), FIELD(kernel, 0), FIELD(load, 2),
    FIELD(stolen_percent, 2), FIELD(environment, 0), FIELD(commit, 0), FIELD(date, 0),
};
/* clang-format on */

/* The value that a record has in a field. */
struct value {
    const char *text;
    long long whole;
    double real;
    bool known;
};

static struct value value_of(const struct bench_record *record, const struct field *field)
{
    const char *at = (const char *)record + field->offset;
    struct value value = {.known = true};
    bool flag = false;

    switch (field->type) {
    case TEXT:
        memcpy(&value.text, at, sizeof(value.text));
        value.known = value.text != NULL;
        break;
    case WHOLE:
        memcpy(&value.whole, at, sizeof(value.whole));
        value.known = value.whole != BENCH_UNKNOWN;
        break;
    case FLAG:
        memcpy(&flag, at, sizeof(flag));
        value.whole = flag;
        break;
    case REAL:
        memcpy(&value.real, at, sizeof(value.real));
        value.known = !isnan(value.real);
        break;
    }
    return value;
}

/* The field whose name is all of the text, or begins a view. */
static const struct field *find(const char *name)
{
    size_t length = strcspn(name, ",");

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!strncmp(fields[i].name, name, length) && !fields[i].name[length])
            return &fields[i];
    assert(!"a view names fields only");
    return NULL;
}

/* Returns the view behind its first field; NULL at its end. */
static const char *next(const char *view)
{
    view += strcspn(view, ",");
    return *view ? view + 1 : NULL;
}

/* Quotes what has to be, as RFC 4180 has it. */
static void print_text(const char *text, FILE *to)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++)
        fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', to);
}

void bench_record_csv(const struct bench_record *record, const char *view, FILE *to)
{
    for (const char *at = view; at; at = next(at)) {
        const struct field *field = find(at);
        struct value value = value_of(record, field);

        fputs(at == view ? "" : ",", to);
        if (value.known && field->type == TEXT)
            print_text(value.text, to);
        else if (value.known && field->type == REAL)
            fprintf(to, "%.*f", field->places, value.real);
        else if (value.known)
            fprintf(to, "%lld", value.whole);
    }
}

json_t *bench_record_json(const struct bench_record *record, const char *view)
{
    json_t *object = json_object();

    for (const char *at = view; at; at = next(at)) {
        const struct field *field = find(at);
        struct value value = value_of(record, field);

        json_object_set_new(object, field->name,
                            !value.known          ? json_null()
                            : field->type == TEXT ? json_string(value.text)
                            : field->type == REAL ? json_real(value.real)
                            : field->type == FLAG ? json_boolean(value.whole)
                                                  : json_integer(value.whole));
    }
    return object;
}

void bench_records_csv(const struct bench_record *records, int count, const char *view, FILE *to)
{
    fprintf(to, "%s,%s\n", view, BENCH_MACHINE_VIEW);
    for (int i = 0; i < count; i++) {
        struct bench_record record = records[i];

        bench_machine_add(&record);
        bench_record_csv(&record, view, to);
        fputs(",", to);
        bench_record_csv(&record, BENCH_MACHINE_VIEW, to);
        fprintf(to, "\n");
    }
}

json_t *bench_records_json(const struct bench_record *records, int count, const char *view)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, bench_record_json(&records[i], view));
    return list;
}

/* ---- Tables for people ----------------------------------------------------------------------- */

/* Places behind the point that make four figures. */
static int four_figures(double value)
{
    return value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
}

static void write_cell(const struct bench_column *column, const struct bench_record *record,
                       char *text)
{
    const struct field *field = find(column->field);
    struct value value = value_of(record, field);
    double real = value.real * (column->scale > 0 ? column->scale : 1);
    int places = column->places == BENCH_FOUR_FIGURES ? four_figures(real) : column->places;

    if (!value.known)
        snprintf(text, CELL_MAX, "%s",
                 record->available && column->unknown ? column->unknown : "n/a");
    else if (field->type == TEXT)
        snprintf(text, CELL_MAX, "%s", value.text);
    else if (field->type == REAL)
        snprintf(text, CELL_MAX, "%.*f%s", places, real, column->suffix ? column->suffix : "");
    else
        snprintf(text, CELL_MAX, "%lld", value.whole);
}

static void print_cell(const struct bench_column *columns, int i, const char *lead,
                       const char *text, FILE *to)
{
    fprintf(to, "%s%*s", i ? " " : lead, columns[i].width, text ? text : "");
}

void bench_columns_print(const struct bench_column *columns, const char *lead,
                         const struct bench_record *record, FILE *to)
{
    for (int i = 0; columns[i].field; i++) {
        char text[CELL_MAX];

        write_cell(&columns[i], record, text);
        print_cell(columns, i, lead, text, to);
    }
}

void bench_columns_head(const struct bench_column *columns, const char *lead, const char *first,
                        FILE *to)
{
    for (int i = 0; columns[i].field; i++)
        print_cell(columns, i, lead, first && !i ? first : columns[i].heading, to);
}

void bench_columns_units(const struct bench_column *columns, const char *lead, FILE *to)
{
    for (int i = 0; columns[i].field; i++)
        print_cell(columns, i, lead, columns[i].unit, to);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static int write_csv(const struct bench_writers *writers, const char *path, const void *result)
{
    FILE *file = output_open(path);
    bool good = file != NULL;

    if (file) {
        writers->csv(result, file);
        good = output_close(file);
    }
    if (!good)
        fprintf(stderr, "%s: cannot write %s: %s\n", writers->command, path, strerror(errno));
    return good ? 0 : -1;
}

static int write_json(const struct bench_writers *writers, const char *path, const void *result)
{
    FILE *file = output_open(path);
    json_t *json = file ? writers->json(result) : NULL;
    bool good = json != NULL;

    if (json)
        good = !json_dumpf(json, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) &&
               fputs("\n", file) >= 0;
    if (file)
        good = output_close(file) && good;
    if (!good)
        fprintf(stderr, "%s: cannot write %s: %s\n", writers->command, path, strerror(errno));
    json_decref(json);
    return good ? 0 : -1;
}

/* A picture, and what is below it. */
struct picture {
    const struct bench_writers *writers;
    const void *result;
};

/* The panels of gnuplot take the whole height, so each leaves a line for the caption. */
static void print_picture(const void *what, FILE *script)
{
    const struct picture *picture = what;
    char caption[512];

    bench_machine_caption(caption, sizeof(caption));
    fprintf(script,
            "set bmargin 5\nset label 99 '%s' at screen 0.995,0.02 right noenhanced font ',10' "
            "textcolor rgb '#888888'\n",
            caption);
    picture->writers->plot(picture->result, script);
}

static int draw(const struct bench_writers *writers, const char *path, const void *result)
{
    const struct picture picture = {writers, result};
    char sentence[GNUPLOT_SENTENCE] = "there is nothing to plot over size";

    if (writers->plot && !gnuplot_write("--plot", path, print_picture, &picture, sentence))
        return 0;
    fprintf(stderr, "%s: %s\n", writers->command, sentence);
    return -1;
}

int bench_write_files(const struct bench_writers *writers, const struct bench_options *options,
                      const void *result)
{
    int failed = 0;

    if (options->csv)
        failed |= write_csv(writers, options->csv, result);
    if (options->json)
        failed |= write_json(writers, options->json, result);
    if (options->plot)
        failed |= draw(writers, options->plot, result);
    return failed ? -1 : 0;
}

static const char *name_of_file(const char *path)
{
    return !path ? "" : strcmp(path, "-") ? path : "stdout";
}

void bench_say_early(const char *what, int count, const char *things,
                     const struct bench_options *options)
{
    if (options->csv || options->json)
        fprintf(stderr, "%s ended early; the %d %s that were done are in %s%s%s\n", what, count,
                things, name_of_file(options->csv), options->csv && options->json ? " and " : "",
                name_of_file(options->json));
}
