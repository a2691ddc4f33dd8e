/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - the JSON of a sweep becomes rows, each with the name of its cell. */
#include "cli/bench/compare/compare.h"

#include "base/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns what the row says, else what the options of its run say. */
static json_t *member(json_t *row, json_t *options, const char *name)
{
    json_t *own = json_object_get(row, name);

    return own ? own : json_object_get(options, name);
}

static const char *text_of(json_t *row, json_t *options, const char *name)
{
    const char *text = json_string_value(member(row, options, name));

    return text ? text : "";
}

static long long number_of(json_t *row, json_t *options, const char *name)
{
    return (long long)json_number_value(member(row, options, name));
}

/* Appends the text, unless it is empty, and a comma before it unless it is the first. */
static void add(char *name, const char *text)
{
    size_t used = strlen(name);

    snprintf(name + used, COMPARE_NAME - used, "%s%s", used && *text ? ", " : "", text);
}

/* Appends a number that is larger than usual, by a format that says what it counts. */
static void add_count(char *name, const char *what, long long number, long long usual)
{
    char text[64];

    if (number <= usual)
        return;
    snprintf(text, sizeof(text), what, number);
    add(name, text);
}

/* Appends those ways of measuring that are not the usual ones. */
static void add_ways(char *name, json_t *row, json_t *options)
{
    static const char *const ways[] = {"cold",     "rewrite", "graph",
                                       "blocking", "threads", "deterministic"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        add(name, json_is_true(member(row, options, ways[i])) ? ways[i] : "");
}

/* Appends the settings of the environment, but those that only say who the ranks are and where, and
 * what is logged. */
static void add_environment(char *name, json_t *environment)
{
    static const bool leaves_out[SETTINGS] = {
        [SETTING_RANK] = true,       [SETTING_SIZE_RANKS] = true, [SETTING_LOCAL_RANK] = true,
        [SETTING_LOCAL_SIZE] = true, [SETTING_ADDRESS] = true,    [SETTING_BENCH_DIR] = true,
        [SETTING_LOG] = true};

    for (int i = 0; i < SETTINGS; i++) {
        const char *setting = setting_at((enum setting_id)i)->name;
        const char *value = json_string_value(json_object_get(environment, setting));

        if (!value || leaves_out[i])
            continue;
        add(name, setting);
        snprintf(name + strlen(name), COMPARE_NAME - strlen(name), "=%s", value);
    }
}

static void name_cell(char *name, json_t *row, json_t *options, json_t *environment)
{
    json_t *settings = json_object_get(row, "settings");
    const char *op = text_of(row, options, "op");
    char size[64];

    snprintf(size, sizeof(size), "%s %lld B", text_of(row, options, "collective"),
             number_of(row, options, "bytes"));
    name[0] = 0;
    add(name, size);
    add(name, text_of(row, options, "algorithm"));
    add(name, text_of(row, options, "dtype"));
    add(name, strcmp(op, "none") ? op : "");
    add_count(name, "%lld. root", number_of(row, options, "root"), 0);
    add(name, text_of(row, options, "memory"));
    add(name, json_is_true(member(row, options, "in_place")) ? "in place" : "");
    add_count(name, "%lld ranks", number_of(row, options, "ranks"), -1);
    add_count(name, "%lld communicators", number_of(row, NULL, "communicators"), 1);
    add_count(name, "%lld buffers", number_of(row, NULL, "buffers"), 1);
    add(name, text_of(row, NULL, "trace"));
    add(name, json_is_number(json_object_get(row, "overlap")) ? "beside computing" : "");
    add_ways(name, row, options);
    add_count(name, "%lld hosts", number_of(NULL, options, "hosts"), 0);
    add(name, text_of(NULL, options, "interface"));
    add_environment(name, environment);
    add(name, json_is_string(settings) ? json_string_value(settings) : "");
}

struct compare_row *compare_row_of(struct compare_run *run, const char *library, const char *cell)
{
    struct compare_row *row;

    for (int i = 0; i < run->row_count; i++)
        if (!strcmp(run->rows[i].library, library) && !strcmp(run->rows[i].cell, cell))
            return &run->rows[i];
    row = realloc(run->rows, ((size_t)run->row_count + 1) * sizeof(*row));
    if (!row)
        return NULL;
    run->rows = row;
    row += run->row_count++;
    *row = (struct compare_row){.steady = true};
    snprintf(row->library, sizeof(row->library), "%s", library);
    snprintf(row->cell, sizeof(row->cell), "%s", cell);
    return row;
}

void compare_add_round(const struct compare_run *run, struct compare_row *row, double us)
{
    int given = 0;

    for (int i = row->round_count; i > 0 && row->sweeps[i - 1] == run->sweeps; i--)
        given++;
    if (us <= 0 || given >= run->share || row->round_count >= NOISE_ROUNDS_MAX)
        return;
    row->sweeps[row->round_count] = run->sweeps;
    row->rounds[row->round_count++] = us;
}

static int read_row(struct compare_run *run, json_t *row, json_t *all, bool medians)
{
    json_t *options = json_object_get(all, "options");
    json_t *environment = json_object_get(json_object_get(all, "machine"), "settings");
    json_t *rounds = json_object_get(row, medians ? "rounds_us" : "fastest_us");
    const char *steady = json_string_value(json_object_get(row, "steady"));
    struct compare_row *to;
    char cell[COMPARE_NAME];

    name_cell(cell, row, options, environment);
    to = compare_row_of(run, text_of(row, NULL, "library"), cell);
    if (!to)
        return -1;
    to->steady = to->steady && (!steady || strcmp(steady, "no"));
    to->wrong += number_of(row, NULL, "wrong");
    for (size_t i = 0; i < json_array_size(rounds); i++)
        compare_add_round(run, to, json_number_value(json_array_get(rounds, i)));
    return 0;
}

/* Anybody who compares two processors should know. */
static void name_machine(struct compare_run *run, json_t *all)
{
    json_t *machine = json_object_get(all, "machine");

    snprintf(run->machine, sizeof(run->machine), "%s, %lld processors, kernel %s",
             text_of(machine, NULL, "processor"), number_of(machine, NULL, "processors"),
             text_of(machine, NULL, "kernel"));
}

static int read_rows(struct compare_run *run, const char *path, json_t *all, bool medians)
{
    json_t *rows = json_object_get(all, "rows");
    json_t *first = json_array_get(json_object_get(all, "libraries"), 0);
    int with_rounds = 0;

    run->complete = run->complete && json_is_true(json_object_get(all, "complete"));
    snprintf(run->first, sizeof(run->first), "%s", text_of(first, NULL, "name"));
    name_machine(run, all);
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (read_row(run, json_array_get(rows, i), all, medians)) {
            fprintf(stderr, "rondo bench compare: out of memory\n");
            return -1;
        }
    for (int i = 0; i < run->row_count; i++)
        with_rounds += run->rows[i].round_count > 0;
    if (!with_rounds)
        fprintf(stderr,
                "rondo bench compare: %s has no times of rounds (fastest_us); give what `rondo "
                "bench COLLECTIVE --json FILE` wrote\n",
                path);
    return with_rounds ? 0 : -1;
}

static int read_file(struct compare_run *run, const char *path, bool medians)
{
    json_error_t error;
    json_t *all = json_load_file(path, 0, &error);
    int failed;

    if (!all && !compare_read_nccl_tests(run, path)) {
        run->sweeps++;
        return 0;
    }
    if (!all) {
        fprintf(
            stderr,
            "rondo bench compare: %s is no result of a sweep, nor of nccl-tests: %s (line %d)\n",
            path, error.text, error.line);
        return -1;
    }
    failed = read_rows(run, path, all, medians);
    run->sweeps++;
    json_decref(all);
    return failed;
}

int compare_read(const char *paths, bool medians, struct compare_run *ret_run)
{
    char *list = strdup(paths), *rest = list, *path;
    int failed = list ? 0 : -1, files = 1;

    for (const char *comma = strchr(paths, ','); comma; comma = strchr(comma + 1, ','))
        files++;
    *ret_run = (struct compare_run){.path = paths, .complete = true};
    ret_run->share = NOISE_ROUNDS_MAX / files;
    if (!ret_run->share) {
        fprintf(stderr, "rondo bench compare: it puts up to %d files together, not %d\n",
                NOISE_ROUNDS_MAX, files);
        failed = -1;
    }
    while (!failed && (path = strsep(&rest, ",")))
        failed = read_file(ret_run, path, medians);
    free(list);
    return failed;
}

void compare_run_done(struct compare_run *run)
{
    free(run->rows);
    run->rows = NULL;
    run->row_count = 0;
}
