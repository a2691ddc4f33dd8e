/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lists.c - many runs in one: `-n 2,4 --algo ring,tree` are four runs.
 *
 * Each option that takes a list is a dimension; the runs are all combinations, the last dimension
 * first. What is no combination, such as a bitwise operation of float32, is left out, unless
 * nothing is left.
 */
#include "cli/bench/workers.h"

#include "base/fail.h"
#include "base/setting.h"
#include "bench/pattern.h"
#include "collectives/algorithm.h"
#include "collectives/file/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

static const char *collective_name(int i)
{
    return i < BENCH_QUESTIONS ? bench_collective_name((enum bench_collective)i) : NULL;
}

static const char *memory_name(int i)
{
    return i < BENCH_MEMORIES ? bench_memory_name((enum bench_memory)i) : NULL;
}

static const char *type_name(int i)
{
    return i < RONDO_TYPES ? pattern_type_name((rondo_type)i) : NULL;
}

static const char *op_name(int i)
{
    return i < RONDO_OPS ? pattern_op_name((rondo_op)i) : NULL;
}

/* "auto" comes before the names of algorithms. */
static const char *algorithm_name(int i)
{
    return i == 0 ? "auto" : algorithms[i - 1] ? algorithms[i - 1]->name : NULL;
}

static const struct dimension {
    const char *what;
    const char *(*name)(int i); /* NULL: numbers */
    int all;                    /* names that "all" stands for; 0: all there are */
} dimensions[BENCH_DIMENSIONS] = {
    [BENCH_BY_RANKS] = {"ranks", NULL, 0},
    [BENCH_BY_MEMORY] = {"memory", memory_name, 0},
    [BENCH_BY_COLLECTIVE] = {"collective", collective_name, BENCH_COLLECTIVES},
    [BENCH_BY_TYPE] = {"type", type_name, 0},
    [BENCH_BY_OP] = {"operation", op_name, 0},
    [BENCH_BY_ALGORITHM] = {"algorithm", algorithm_name, 0},
};

/* Types of nccl-tests that are called otherwise here. */
static const char *own_type_name(const char *word)
{
    static const char *const names[][2] = {{"half", "float16"},
                                           {"float", "float32"},
                                           {"double", "float64"},
                                           {"f8e4m3", "float8_e4m3"},
                                           {"f8e5m2", "float8_e5m2"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(names[i][0], word))
            return names[i][1];
    return word;
}

static int find_name(const struct argp_state *state, enum bench_dimension dimension,
                     const char *word)
{
    if (dimension == BENCH_BY_TYPE)
        word = own_type_name(word);
    return argument_name(state, dimensions[dimension].what, dimensions[dimension].name, word);
}

void bench_take_type(struct argp_state *state, void *input, char *text)
{
    ((struct bench_options *)input)->call.type = (rondo_type)find_name(state, BENCH_BY_TYPE, text);
}

void bench_take_op(struct argp_state *state, void *input, char *text)
{
    ((struct bench_options *)input)->call.op = (rondo_op)find_name(state, BENCH_BY_OP, text);
}

/* "file:F": the plans of F are proved here, and the ranks of this run read them again. The name by
 * which they call them is of the plan and its text: by it, or not at all. */
static void take_file(const struct argp_state *state, struct bench_options *options,
                      const char *path)
{
    const struct algorithm *algorithm;
    size_t used = strlen(options->settings);
    char *whole = realpath(path, NULL);

    if (file_algorithm(path, &algorithm))
        argp_error(state, "%s", fail_sentence());
    if (!whole || strchr(whole, ' ') ||
        used + strlen(whole) + sizeof(" RONDO_ALGORITHM=file:") > sizeof(options->settings))
        argp_error(state, "--algo file:%s: rename the file, its path has a space or is too long",
                   path);
    snprintf(options->settings + used, sizeof(options->settings) - used,
             "%sRONDO_ALGORITHM=file:%s", used ? " " : "", whole);
    snprintf(options->call.algorithm, sizeof(options->call.algorithm), "%s", algorithm->name);
    free(whole);
}

/* ---- A word of a list becomes a member of the options ---------------------------------------- */

static void take_word(const struct argp_state *state, struct bench_options *options,
                      enum bench_dimension dimension, const char *word)
{
    struct bench_call *call = &options->call;
    bool file = dimension == BENCH_BY_ALGORITHM && !strncmp(word, "file:", 5);
    int found = dimensions[dimension].name && !file ? find_name(state, dimension, word) : 0;

    switch (dimension) {
    case BENCH_BY_RANKS:
        options->ranks = (int)argument_whole(state, "-n", word, 1, INT_MAX);
        break;
    case BENCH_BY_MEMORY:
        options->memory = (enum bench_memory)found;
        break;
    case BENCH_BY_COLLECTIVE:
        call->collective = (enum bench_collective)found;
        break;
    case BENCH_BY_TYPE:
        call->type = (rondo_type)found;
        break;
    case BENCH_BY_OP:
        call->op = (rondo_op)found;
        break;
    case BENCH_BY_ALGORITHM:
        snprintf(call->algorithm, sizeof(call->algorithm), "%s", found ? word : "");
        if (file)
            take_file(state, options, word + 5);
        break;
    case BENCH_DIMENSIONS:
        break;
    }
}

/* Twice as many ranks each time: "2:8" is "2,4,8". */
static void print_range(const struct argp_state *state, const char *list, char *text, size_t room)
{
    const char *colon = strchr(list, ':');
    char low[16] = "";
    long from, to;
    size_t used = 0;

    snprintf(low, sizeof(low), "%.*s", (int)(colon - list), list);
    from = argument_whole(state, "-n", low, 1, INT_MAX);
    to = argument_whole(state, "-n", colon + 1, from, INT_MAX);
    for (long ranks = from; ranks <= to && used < room; ranks *= 2)
        used += (size_t)snprintf(text + used, room - used, "%s%ld", used ? "," : "", ranks);
}

/* "all", where there are names, is all that this dimension has, but no question that is no
 * collective. */
static void print_all(const struct dimension *dimension, char *text, size_t room)
{
    size_t used = 0;

    for (int i = 0; (!dimension->all || i < dimension->all) && dimension->name(i) && used < room;
         i++)
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s", i ? "," : "", dimension->name(i));
}

static char *words_of(const struct argp_state *state, int dimension, const char *list)
{
    char text[1024] = "";

    if (dimensions[dimension].name && !strcmp(list, "all"))
        print_all(&dimensions[dimension], text, sizeof(text));
    else if (!dimensions[dimension].name && strchr(list, ':'))
        print_range(state, list, text, sizeof(text));
    return strdup(*text ? text : list);
}

/* ---- Combinations ---------------------------------------------------------------------------- */

static bool has_form(const struct bench_options *options)
{
    const struct bench_call *call = &options->call;
    const struct algorithm *algorithm = call->algorithm[0] ? algorithm_find(call->algorithm) : NULL;

    if (algorithm && algorithm->given && options->ranks &&
        (algorithm->given->size != options->ranks || algorithm->given->root != call->root))
        return false;
    for (int c = 0; algorithm && c < RONDO_COLLECTIVES; c++)
        if (!strcmp(rondo_collective_name((rondo_collective)c),
                    bench_collective_name(call->collective)))
            return algorithm->forms[c].write != NULL;
    return !algorithm;
}

bool bench_has_elements(const struct bench_options *options)
{
    const struct bench_call *call = &options->call;
    size_t element = pattern_type_bytes(call->type);
    bool any = options->trace || !options->ranks || !bench_collective_has_size(call->collective);

    for (int i = 0; i < options->size_count; i++)
        any = any || bench_count(call->collective, options->sizes[i], element, options->ranks) > 0;
    return any;
}

static bool is_possible(const struct bench_options *options)
{
    const struct bench_call *call = &options->call;

    return (!bench_collective_reduces(call->collective) ||
            pattern_op_has_type(call->op, call->type)) &&
           (!call->in_place || bench_collective_has_in_place(call->collective)) &&
           (!options->ranks || call->root < options->ranks) &&
           (options->ranks != 1 || !bench_collective_is_of_pairs(call->collective)) &&
           has_form(options) && bench_has_elements(options);
}

static void add_run(const struct argp_state *state, struct bench_runs *runs,
                    const struct bench_options *options)
{
    struct bench_options *larger;

    if (!is_possible(options)) {
        runs->left_out++;
        return;
    }
    larger = realloc(runs->list, ((size_t)runs->count + 1) * sizeof(*larger));
    if (!larger)
        argp_failure(state, 1, 0, "out of memory");
    runs->list = larger;
    runs->list[runs->count++] = *options;
}

/* nccl-tests calls everything out of place, then in place where it can be. */
static void add_places(const struct argp_state *state, struct bench_runs *runs,
                       struct bench_options *options)
{
    add_run(state, runs, options);
    if (options->format != BENCH_NCCL_TESTS ||
        !bench_collective_has_in_place(options->call.collective))
        return;
    options->call.in_place = true;
    add_run(state, runs, options);
    options->call.in_place = false;
}

static void combine(const struct argp_state *state, struct bench_options *options, int dimension,
                    struct bench_runs *runs)
{
    size_t used = strlen(options->settings);
    char *words, *rest, *word;
    bool differ = true;

    if (dimension == BENCH_DIMENSIONS) {
        add_places(state, runs, options);
        return;
    }
    if (!options->lists[dimension]) {
        combine(state, options, dimension + 1, runs);
        return;
    }
    words = rest = words_of(state, dimension, options->lists[dimension]);
    while ((word = strsep(&rest, ","))) {
        take_word(state, options, (enum bench_dimension)dimension, word);
        if (differ)
            combine(state, options, dimension + 1, runs);
        options->settings[used] = 0; /* what a file has added */
        /* The operation of a broadcast makes no difference, so the first one is enough. */
        differ = dimension != BENCH_BY_OP || bench_collective_reduces(options->call.collective);
    }
    free(words);
}

/* Appends "NAME=value" to what the run sets. */
static void combine_settings(const struct argp_state *state, struct bench_options *options, int set,
                             struct bench_runs *runs)
{
    const char *values = set < options->set_count ? strchr(options->sets[set], '=') : NULL;
    size_t used = strlen(options->settings);
    char *words, *rest, *word;

    if (!values) {
        combine(state, options, 0, runs);
        return;
    }
    words = rest = strdup(values + 1);
    while ((word = strsep(&rest, ","))) {
        snprintf(options->settings + used, sizeof(options->settings) - used, "%s%.*s=%s",
                 used ? " " : "", (int)(values - options->sets[set]), options->sets[set], word);
        combine_settings(state, options, set + 1, runs);
        options->settings[used] = 0;
    }
    free(words);
}

static const char *setting_name(int i)
{
    return i < SETTINGS ? setting_at((enum setting_id)i)->name : NULL;
}

void bench_put_setting(const struct argp_state *state, const char *name, const char *value)
{
    enum setting_id id = (enum setting_id)argument_name(state, "setting", setting_name, name);
    char accepted[256];

    setenv(name, value, 1);
    if (!setting_check(id))
        return;
    setting_accepts(setting_at(id), accepted, sizeof(accepted));
    argp_error(state, "%s is '%s': accepted is %s", name, value, accepted);
}

void bench_take_set(struct argp_state *state, void *input, char *text)
{
    struct bench_options *options = input;
    char copy[sizeof(options->settings) / BENCH_SETS_MAX] = "";
    char *values = copy, *name, *value;

    if (!strchr(text, '='))
        argp_error(state, "--set is NAME=VALUE or NAME=VALUE,VALUE, not '%s'", text);
    if (strlen(text) >= sizeof(copy))
        argp_error(state, "--set has at most %zu characters, not '%s'", sizeof(copy) - 1, text);
    snprintf(copy, sizeof(copy), "%s", text);
    name = strsep(&values, "=");
    while ((value = strsep(&values, ",")))
        bench_put_setting(state, name, value);
    unsetenv(name); /* until its run */
    if (options->set_count == BENCH_SETS_MAX)
        argp_error(state, "--set can be given %d times", BENCH_SETS_MAX);
    options->sets[options->set_count++] = text;
}

void bench_lists_expand(const struct argp_state *state, struct bench_options *options,
                        struct bench_runs *ret_runs)
{
    *ret_runs = (struct bench_runs){0};
    combine_settings(state, options, 0, ret_runs);
}
