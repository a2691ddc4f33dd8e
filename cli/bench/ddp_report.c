/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_report.c - what `rondo bench ddp` found: a table, CSV, JSON. */
#include "cli/bench/ddp.h"

#include "cli/bench/report.h"
#include "cli/json_file.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Half of the last digit that is printed of an efficiency; room for a sentence of doubt. */
static const double NEAR_ENOUGH = 0.0005;
enum { DOUBT = 320 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts what it is given. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Of one figure of a world's runs, named by its place in struct bench_ddp_run. */
static double median_of(const struct bench_ddp_result *result, int world, size_t figure)
{
    double values[BENCH_DDP_ROUNDS];

    for (int i = 0; i < result->rounds; i++)
        memcpy(&values[i], (const char *)&result->worlds[world].runs[i] + figure,
               sizeof(values[i]));
    return median(values, result->rounds);
}

#define MEDIAN_OF(result, world, figure) \
    median_of(result, world, offsetof(struct bench_ddp_run, figure))

/* Against the first world, within each round. */
static double speed_up(const struct bench_ddp_result *result, int world)
{
    double values[BENCH_DDP_ROUNDS];

    for (int i = 0; i < result->rounds; i++)
        values[i] =
            result->worlds[world].runs[i].tokens_per_s / result->worlds[0].runs[i].tokens_per_s;
    return median(values, result->rounds);
}

/* As many as the speed-up could be at best. */
static double perfect(const struct bench_ddp_result *result, int world)
{
    return (double)result->worlds[world].ranks / result->worlds[0].ranks;
}

/*
 * Ranks do not make each other faster: more than that is a baseline that other work slowed down.
 * Its rounds then differ, by which people see how much. False: there is nothing to warn of.
 */
static bool doubt(const struct bench_ddp_result *result, int world, char *text, size_t size)
{
    double efficiency = speed_up(result, world) / perfect(result, world);
    double least = result->worlds[0].runs[0].tokens_per_s, most = least;

    if (efficiency <= 1 + NEAR_ENOUGH)
        return false;
    for (int i = 1; i < result->rounds; i++) {
        double speed = result->worlds[0].runs[i].tokens_per_s;

        least = speed < least ? speed : least;
        most = speed > most ? speed : most;
    }
    snprintf(text, size,
             "%.1f %% efficiency on %d ranks is more than there can be: %d rank%s, which it is "
             "compared with, had %.0f to %.0f tokens/s over the rounds, so other work slowed it "
             "down; repeat it on a quiet machine, or with more --rounds",
             100 * efficiency, result->worlds[world].ranks, result->worlds[0].ranks,
             result->worlds[0].ranks == 1 ? "" : "s", least, most);
    return true;
}

static int processors(void)
{
    cpu_set_t allowed;

    return sched_getaffinity(0, sizeof(allowed), &allowed) ? 0 : CPU_COUNT(&allowed);
}

void bench_ddp_print(const struct bench_ddp_result *result, FILE *to)
{
    int most = processors();
    int crowded = 0;
    char text[DOUBT];

    fprintf(to, "# %d round%s of %d steps; the same batch per rank\n", result->rounds,
            result->rounds == 1 ? "" : "s", result->options->steps);
    fprintf(to, "#%5s %12s %9s %11s %10s %9s %8s %14s\n", "ranks", "tokens/s", "speed-up",
            "efficiency", "step (ms)", "waiting", "hidden", "bytes per step");
    for (int i = 0; i < result->options->world_count; i++) {
        double hidden = MEDIAN_OF(result, i, hidden);
        double faster = speed_up(result, i);

        fprintf(to, "%6d %12.0f %8.2fx %9.1f %% %10.2f %7.1f %%", result->worlds[i].ranks,
                MEDIAN_OF(result, i, tokens_per_s), faster, 100 * faster / perfect(result, i),
                1e3 * MEDIAN_OF(result, i, step), 100 * MEDIAN_OF(result, i, waiting));
        if (hidden >= 0 && result->worlds[i].ranks > 1)
            fprintf(to, " %6.1f %%", 100 * hidden);
        else
            fprintf(to, " %8s", "-");
        fprintf(to, " %14.0f\n", MEDIAN_OF(result, i, bytes));
        crowded += result->worlds[i].ranks > most;
    }
    for (int i = 0; i < result->options->world_count; i++)
        if (doubt(result, i, text, sizeof(text)))
            fprintf(to, "# warning: %s\n", text);
    if (crowded && most)
        fprintf(to, "# there are %d processors: more ranks than that cannot be faster\n", most);
}

static void print_csv(const struct bench_ddp_result *result, FILE *to)
{
    fprintf(to, "ranks,tokens_per_s,speed_up,efficiency,step_s,waiting,hidden,bytes_per_step\n");
    for (int i = 0; i < result->options->world_count; i++)
        fprintf(to, "%d,%.1f,%.4f,%.4f,%.6f,%.4f,%.4f,%.0f\n", result->worlds[i].ranks,
                MEDIAN_OF(result, i, tokens_per_s), speed_up(result, i),
                speed_up(result, i) / perfect(result, i), MEDIAN_OF(result, i, step),
                MEDIAN_OF(result, i, waiting), MEDIAN_OF(result, i, hidden),
                MEDIAN_OF(result, i, bytes));
}

int bench_ddp_csv_write(const struct bench_ddp_result *result, const char *path)
{
    FILE *file = fopen(path, "we");
    int bad = !file;

    if (file) {
        print_csv(result, file);
        bad = ferror(file) != 0;
        bad |= fclose(file) != 0;
    }
    if (bad)
        fprintf(stderr, "rondo bench ddp: cannot write %s: %s\n", path, strerror(errno));
    return bad ? -1 : 0;
}

static json_t *json_of_run(const struct bench_ddp_run *run)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "tokens_per_s", run->tokens_per_s, "step_s",
                     run->step, "waiting", run->waiting, "hidden", run->hidden, "bytes_per_step",
                     run->bytes);
}

int bench_ddp_json_write(const struct bench_ddp_result *result, const char *path)
{
    json_t *worlds = json_array(), *warnings = json_array();
    char text[DOUBT];

    for (int i = 0; i < result->options->world_count; i++) {
        json_t *runs = json_array();

        for (int k = 0; k < result->rounds; k++)
            json_array_append_new(runs, json_of_run(&result->worlds[i].runs[k]));
        json_array_append_new(worlds,
                              json_pack("{s:i, s:f, s:f, s:o}", "ranks", result->worlds[i].ranks,
                                        "tokens_per_s", MEDIAN_OF(result, i, tokens_per_s),
                                        "speed_up", speed_up(result, i), "rounds", runs));
        if (doubt(result, i, text, sizeof(text)))
            json_array_append_new(warnings, json_string(text));
    }
    return json_file_write("rondo bench ddp", path,
                           json_pack("{s:o, s:i, s:o, s:o}", "machine", bench_machine_json(),
                                     "steps", result->options->steps, "worlds", worlds, "warnings",
                                     warnings))
               ? 0
               : -1;
}
