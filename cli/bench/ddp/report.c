/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what `rondo bench ddp` says of its trainings: a table, files, a picture. */
#include "cli/bench/ddp/ddp.h"

#include "cli/bench/noise.h"

#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Half of the last digit that is printed of an efficiency; room for a sentence of doubt. */
static const double NEAR_ENOUGH = 0.0005;
enum { DOUBT = 320 };

/* The median of one figure of a world's runs, named by its place in a record. */
static double median_of(const struct bench_ddp_result *result, int world, size_t figure)
{
    double values[BENCH_DDP_ROUNDS];

    for (int i = 0; i < result->rounds; i++)
        memcpy(&values[i], (const char *)&result->worlds[world].runs[i] + figure,
               sizeof(values[i]));
    return bench_median(values, result->rounds);
}

#define MEDIAN_OF(figure) median_of(result, world, offsetof(struct bench_record, figure))

/* They are against the first world, within each round. */
static void speed_ups(const struct bench_ddp_result *result, int world,
                      double ret_values[BENCH_DDP_ROUNDS])
{
    for (int i = 0; i < result->rounds; i++)
        ret_values[i] =
            result->worlds[world].runs[i].tokens_per_s / result->worlds[0].runs[i].tokens_per_s;
}

static double speed_up(const struct bench_ddp_result *result, int world)
{
    double values[BENCH_DDP_ROUNDS];

    speed_ups(result, world, values);
    return bench_median(values, result->rounds);
}

/* The best speed-up that there could be. */
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

static struct bench_record record_of(const struct bench_ddp_result *result, int world)
{
    double faster = speed_up(result, world);

    return (struct bench_record){.ranks = result->worlds[world].ranks,
                                 .available = true,
                                 .tokens_per_s = MEDIAN_OF(tokens_per_s),
                                 .speed_up = faster,
                                 .efficiency = faster / perfect(result, world),
                                 .step_s = MEDIAN_OF(step_s),
                                 .waiting = MEDIAN_OF(waiting),
                                 .hidden = MEDIAN_OF(hidden),
                                 .bytes_per_step = MEDIAN_OF(bytes_per_step)};
}

/* One rank has nothing to hide. */
static bool is_hidden_known(const struct bench_record *record)
{
    return record->hidden >= 0 && record->ranks > 1;
}

static const struct bench_column columns[] = {
    {"ranks", "ranks", .width = 5},
    {"tokens_per_s", "tokens/s", .width = 12},
    {"speed_up", "speed-up", .width = 9, .places = 2, .suffix = "x"},
    {"efficiency", "efficiency", .width = 11, .places = 1, .scale = 100, .suffix = " %"},
    {"step_s", "step (ms)", .width = 10, .places = 2, .scale = 1e3},
    {"waiting", "waiting", .width = 9, .places = 1, .scale = 100, .suffix = " %"},
    {"hidden", "hidden", .width = 8, .places = 1, .scale = 100, .suffix = " %", .unknown = "-"},
    {"bytes_per_step", "bytes per step", .width = 14},
    {0},
};

void bench_ddp_print(const struct bench_ddp_result *result, FILE *to)
{
    int most = processors();
    int oversubscribed = 0;
    char text[DOUBT];

    fprintf(to, "# %d round%s of %d steps; the same batch per rank\n", result->rounds,
            result->rounds == 1 ? "" : "s", result->options->steps);
    bench_columns_head(columns, "#", NULL, to);
    fprintf(to, "\n");
    for (int i = 0; i < result->options->world_count; i++) {
        struct bench_record record = record_of(result, i);

        if (!is_hidden_known(&record))
            record.hidden = NAN;
        bench_columns_print(columns, " ", &record, to);
        fprintf(to, "\n");
        oversubscribed += record.ranks > most;
    }
    for (int i = 0; i < result->options->world_count; i++)
        if (doubt(result, i, text, sizeof(text)))
            fprintf(to, "# warning: %s\n", text);
    if (oversubscribed && most)
        fprintf(to, "# there are %d processors: more ranks than that cannot be faster\n", most);
}

static void print_csv(const void *what, FILE *to)
{
    const struct bench_ddp_result *result = what;
    struct bench_record records[BENCH_DDP_WORLDS];

    for (int i = 0; i < result->options->world_count; i++)
        records[i] = record_of(result, i);
    bench_records_csv(records, result->options->world_count,
                      "ranks,tokens_per_s,speed_up,efficiency,step_s,waiting,hidden,bytes_per_step",
                      to);
}

static json_t *world_json(const struct bench_ddp_result *result, int world)
{
    struct bench_record record = record_of(result, world);
    json_t *json = bench_record_json(&record, "ranks,tokens_per_s,speed_up");

    json_object_set_new(json, "rounds",
                        bench_records_json(result->worlds[world].runs, result->rounds,
                                           "tokens_per_s,step_s,waiting,hidden,bytes_per_step"));
    return json;
}

static json_t *make_json(const void *what)
{
    const struct bench_ddp_result *result = what;
    json_t *worlds = json_array(), *warnings = json_array();
    char text[DOUBT];

    for (int i = 0; i < result->options->world_count; i++) {
        json_array_append_new(worlds, world_json(result, i));
        if (doubt(result, i, text, sizeof(text)))
            json_array_append_new(warnings, json_string(text));
    }
    return json_pack("{s:o, s:b, s:i, s:o, s:o}", "machine", bench_machine_json(), "complete",
                     result->rounds == result->options->bench.rounds, "steps",
                     result->options->steps, "worlds", worlds, "warnings", warnings);
}

/* ---- The picture: the speed-up beside the best one, and what a step is made of --------------- */

static double least(const double *values, int count)
{
    double least = values[0];

    for (int i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

static double most(const double *values, int count)
{
    double most = values[0];

    for (int i = 1; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

/* Columns: ranks, speed-up, its least and most over rounds, the best that there could be; then of
 * a step the milliseconds that the mean rank computes, and waits; and what was hidden, as text. */
static void print_data(const struct bench_ddp_result *result, FILE *to)
{
    fprintf(to, "$worlds << END\n");
    for (int world = 0; world < result->options->world_count; world++) {
        struct bench_record record = record_of(result, world);
        double values[BENCH_DDP_ROUNDS];

        speed_ups(result, world, values);
        fprintf(to, "%lld %g %g %g %g %g %g ", record.ranks, record.speed_up,
                least(values, result->rounds), most(values, result->rounds), perfect(result, world),
                1e3 * record.step_s * (1 - record.waiting), 1e3 * record.step_s * record.waiting);
        if (is_hidden_known(&record))
            fprintf(to, "\"%.0f %% hidden\"\n", 100 * record.hidden);
        else
            fprintf(to, "\"\"\n");
    }
    fprintf(to, "END\n");
}

static void plot(const void *what, FILE *to)
{
    const struct bench_ddp_result *result = what;

    print_data(result, to);
    fprintf(
        to,
        "set terminal svg size 1200,520 dynamic enhanced font 'Helvetica,13' background '#ffffff'\n"
        "set multiplot layout 1,2 title 'training on several numbers of ranks, the same batch per "
        "rank: medians of %d round%s of %d steps' font ',17'\n"
        "set border 3 lc rgb '#888888'\nset tics nomirror textcolor rgb '#333333'\n"
        "set grid lc rgb '#e4e4e4' lt 1 lw 1\nset key outside top center horizontal samplen 2\n"
        "set xlabel 'ranks'\nset lmargin 10\nset rmargin 3\nset yrange [0:*]\n"
        "set title 'Speed-up, higher is better; bars: least and most over rounds' font ',15'\n"
        "set xrange [0:*]\nset offsets 0,0.5,0,0\nset ylabel 'times as fast'\n"
        "plot $worlds using 1:5:xtic(1) with lines lw 1.5 dt 2 lc rgb '#888888' title 'best', "
        "$worlds using 1:2:3:4 with yerrorlines lw 2.5 pt 7 ps 0.6 lc rgb '#d1495b' "
        "title 'measured'\n",
        result->rounds, result->rounds == 1 ? "" : "s", result->options->steps);
    fprintf(to,
            "set title 'A step, lower is better' font ',15'\nset ylabel 'milliseconds'\n"
            "set style data histograms\nset style histogram rowstacked\n"
            "set style fill solid 0.85 border lc rgb '#ffffff'\nset boxwidth 0.6\n"
            "set xrange [-0.6:%g]\nset offsets 0,0,graph 0.08,0\n"
            "plot $worlds using 6:xtic(1) lc rgb '#00798c' title 'computing', "
            "$worlds using 7 lc rgb '#edae49' title 'waiting for others', "
            "$worlds using 0:($6+$7):8 with labels offset 0,0.7 font ',11' notitle\n"
            "unset multiplot\n",
            result->options->world_count - 0.4);
}

int bench_ddp_write(const struct bench_ddp_result *result)
{
    static const struct bench_writers writers = {"rondo bench ddp", print_csv, make_json, plot};

    return bench_write_files(&writers, &result->options->bench, result);
}
