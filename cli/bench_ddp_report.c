/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_ddp_report.c - what `rondo bench ddp` found: a table, CSV, JSON. */
#include "cli/bench_ddp.h"

#include "cli/bench_report.h"
#include "cli/json_file.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int processors(void)
{
    cpu_set_t allowed;

    return sched_getaffinity(0, sizeof(allowed), &allowed) ? 0 : CPU_COUNT(&allowed);
}

void bench_ddp_print(const struct bench_ddp_result *result)
{
    int most = processors();
    int crowded = 0;

    printf("# %d round%s of %d steps; the same batch per rank\n", result->rounds,
           result->rounds == 1 ? "" : "s", result->options->steps);
    printf("#%5s %12s %9s %11s %10s %9s %8s %14s\n", "ranks", "tokens/s", "speed-up", "efficiency",
           "step (ms)", "waiting", "hidden", "bytes per step");
    for (int i = 0; i < result->options->world_count; i++) {
        double hidden = MEDIAN_OF(result, i, hidden);
        double faster = speed_up(result, i);

        printf("%6d %12.0f %8.2fx %9.1f %% %10.2f %7.1f %%", result->worlds[i].ranks,
               MEDIAN_OF(result, i, tokens_per_s), faster, 100 * faster / perfect(result, i),
               1e3 * MEDIAN_OF(result, i, step), 100 * MEDIAN_OF(result, i, waiting));
        if (hidden >= 0 && result->worlds[i].ranks > 1)
            printf(" %6.1f %%", 100 * hidden);
        else
            printf(" %8s", "-");
        printf(" %14.0f\n", MEDIAN_OF(result, i, bytes));
        crowded += result->worlds[i].ranks > most;
    }
    if (crowded && most)
        printf("# there are %d processors: more ranks than that cannot be faster\n", most);
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
    json_t *worlds = json_array();

    for (int i = 0; i < result->options->world_count; i++) {
        json_t *runs = json_array();

        for (int k = 0; k < result->rounds; k++)
            json_array_append_new(runs, json_of_run(&result->worlds[i].runs[k]));
        json_array_append_new(worlds,
                              json_pack("{s:i, s:f, s:f, s:o}", "ranks", result->worlds[i].ranks,
                                        "tokens_per_s", MEDIAN_OF(result, i, tokens_per_s),
                                        "speed_up", speed_up(result, i), "rounds", runs));
    }
    return json_file_write("rondo bench ddp", path,
                           json_pack("{s:o, s:i, s:o}", "machine", bench_machine_json(), "steps",
                                     result->options->steps, "worlds", worlds))
               ? 0
               : -1;
}
