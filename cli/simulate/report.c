/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what came of it: for people, as CSV, as JSON and as a picture. */
#include "cli/simulate/simulate.h"

#include "cli/common/gnuplot.h"
#include "cli/common/json_file.h"
#include "cli/common/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void report_size(double bytes, char *text, size_t room)
{
    gnuplot_size((size_t)(bytes + 0.5), text, room);
}

/* ---- For people ------------------------------------------------------------------------------ */

static void print_fold(const struct answer *answer)
{
    const struct fold *fold = &answer->fold;
    int plans = fold->compared + fold->period;

    if (fold->period == fold->ranks) {
        printf("# %s: all %d ranks are simulated\n", answer->algorithm->name, fold->ranks);
        return;
    }
    printf("# %s: %d rank%s stand%s for all %d: moving every rank %s of %d changes nothing, ",
           answer->algorithm->name, fold->period, fold->period == 1 ? "" : "s",
           fold->period == 1 ? "s" : "", fold->ranks,
           fold->by_bits ? "by an exclusive or with a multiple" : "on by a multiple", fold->period);
    if (plans < fold->ranks)
        printf("as far as compared: %d plans\n", plans);
    else
        printf("in all %d plans, so this is exact\n", plans);
}

static const char *remark(const struct answer *answer, char text[96])
{
    text[0] = '\0';
    if (answer->simulated < answer->segments)
        snprintf(text, 96, "  %d of %d segments, +-%.1f %%", answer->simulated, answer->segments,
                 100 * answer->doubt * (answer->segments - answer->simulated) / answer->segments);
    if (answer->cut)
        snprintf(text + strlen(text), 96 - strlen(text), "  rates near by only");
    return text;
}

void report_table(const struct ask *ask, const struct answers *answers)
{
    const struct algorithm *before = NULL;
    char size[32], text[96];

    printf("# %s over %d ranks of %s, simulated: no measurement\n",
           rondo_collective_name((rondo_collective)ask->collective), ask->ranks, ask->topology);
    for (int i = 0; i < answers->count; i++) {
        if (answers->list[i].algorithm != before)
            print_fold(&answers->list[i]);
        before = answers->list[i].algorithm;
    }
    printf("%-20s %8s %14s %10s %10s\n", "algorithm", "size", "time (us)", "algbw", "busbw");
    for (int i = 0; i < answers->count; i++) {
        const struct answer *answer = &answers->list[i];

        report_size(answer->bytes, size, sizeof(size));
        printf("%-20s %8s %14.2f %10.3f %10.3f %s%s\n", answer->algorithm->name, size,
               answer->seconds * 1e6, answer->algorithm_bw / 1e9, answer->bus_bw / 1e9,
               answer->fastest ? "*" : "", remark(answer, text));
    }
    if (ask->list_count > 1)
        printf("# * the fastest at this size\n");
    for (int i = 0; i < answers->count && ask->path; i++)
        path_sentence(ask, &answers->list[i], stdout);
}

/* ---- For programs ---------------------------------------------------------------------------- */

static bool write_csv(const struct ask *ask, const struct answers *answers)
{
    FILE *to = output_open(ask->csv);

    if (to) {
        fprintf(to, "collective,algorithm,topology,ranks,bytes,seconds,algbw_GBps,busbw_GBps,"
                    "fastest,kinds,segments,simulated,doubt\n");
        for (int i = 0; i < answers->count; i++) {
            const struct answer *answer = &answers->list[i];

            fprintf(to, "%s,%s,%s,%d,%.0f,%.9g,%.6g,%.6g,%d,%d,%d,%d,%.4g\n",
                    rondo_collective_name((rondo_collective)ask->collective),
                    answer->algorithm->name, ask->machine.name, ask->ranks, answer->bytes,
                    answer->seconds, answer->algorithm_bw / 1e9, answer->bus_bw / 1e9,
                    answer->fastest, answer->fold.period, answer->segments, answer->simulated,
                    answer->doubt);
        }
    }
    if (to && output_close(to))
        return true;
    fprintf(stderr, "rondo simulate: cannot write %s: %s\n", ask->csv, strerror(errno));
    return false;
}

static json_t *places_json(const struct place places[ASK_PLACES])
{
    json_t *list = json_array();

    for (int i = 0; i < ASK_PLACES && places[i].part > 0; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:f}", "what", places[i].text, "part", places[i].part));
    return list;
}

static json_t *answer_json(const struct answer *answer)
{
    json_t *json = json_pack(
        "{s:s, s:f, s:f, s:f, s:f, s:b, s:i, s:b, s:i, s:i, s:i, s:f, s:b, s:I, s:f}", "algorithm",
        answer->algorithm->name, "bytes", answer->bytes, "seconds", answer->seconds, "algbw_GBps",
        answer->algorithm_bw / 1e9, "busbw_GBps", answer->bus_bw / 1e9, "fastest", answer->fastest,
        "kinds", answer->fold.period, "by_bits", answer->fold.by_bits, "plans_compared",
        answer->fold.compared, "segments", answer->segments, "simulated", answer->simulated,
        "doubt", answer->doubt, "exact_rates", !answer->cut, "events", (json_int_t)answer->events,
        "wall_seconds", answer->wall);

    if (!json)
        return NULL;
    json_object_set_new(json, "busiest", places_json(answer->busiest));
    if (answer->path) {
        json_object_set_new(json, "last_rank", json_integer(answer->last_rank));
        json_object_set_new(json, "path", places_json(answer->places));
    }
    return json;
}

static json_t *machine_json(const struct machine *machine)
{
    json_t *json = json_object();
    const char *key, *sentence;
    char text[64];

    for (int i = 0; (key = machine_key(i, &sentence)); i++) {
        char *end;
        double number;

        machine_value(machine, i, text);
        number = strtod(text, &end);
        json_object_set_new(json, key, *end ? json_string(text) : json_real(number));
    }
    return json;
}

static bool write_json(const struct ask *ask, const struct answers *answers)
{
    json_t *list = json_array();

    for (int i = 0; i < answers->count; i++)
        json_array_append_new(list, answer_json(&answers->list[i]));
    return json_file_write("rondo simulate", ask->json,
                           json_pack("{s:s, s:i, s:s, s:o, s:f, s:o}", "collective",
                                     rondo_collective_name((rondo_collective)ask->collective),
                                     "ranks", ask->ranks, "topology", ask->topology, "machine",
                                     machine_json(&ask->machine), "seed", ask->seed, "results",
                                     list));
}

/* ---- The picture ----------------------------------------------------------------------------- */

struct drawing {
    const struct ask *ask;
    const struct answers *answers;
};

static void print_script(const void *what, FILE *script)
{
    const struct drawing *drawing = what;
    const struct ask *ask = drawing->ask;
    const struct answers *answers = drawing->answers;
    const struct algorithm *before = NULL;

    fprintf(
        script,
        "set terminal svg size 800,500 font \",12\"\nset logscale x 2\nset logscale y\n"
        "set key left top\nset grid\nset xlabel \"bytes\"\nset ylabel \"microseconds\"\n"
        "set format x \"%%.0b%%B\"\nset title \"%s over %d ranks of %s, simulated\" noenhanced\n",
        rondo_collective_name((rondo_collective)ask->collective), ask->ranks, ask->machine.name);
    for (int i = 0; i < answers->count; i++) {
        if (answers->list[i].algorithm != before)
            fprintf(script, "%s '-' with linespoints title \"%s\" noenhanced",
                    before ? "," : "plot", answers->list[i].algorithm->name);
        before = answers->list[i].algorithm;
    }
    fprintf(script, "\n");
    before = NULL;
    for (int i = 0; i < answers->count; i++) {
        if (before && answers->list[i].algorithm != before)
            fprintf(script, "e\n");
        before = answers->list[i].algorithm;
        fprintf(script, "%.0f %.9g\n", answers->list[i].bytes, answers->list[i].seconds * 1e6);
    }
    fprintf(script, "e\n");
}

static bool write_svg(const struct ask *ask, const struct answers *answers)
{
    const struct drawing drawing = {ask, answers};
    char sentence[GNUPLOT_SENTENCE];

    if (!gnuplot_write("--svg", ask->svg, print_script, &drawing, sentence))
        return true;
    fprintf(stderr, "rondo simulate: %s\n", sentence);
    return false;
}

bool report_files(const struct ask *ask, const struct answers *answers)
{
    bool good = true;

    if (ask->csv)
        good &= write_csv(ask, answers);
    if (ask->json)
        good &= write_json(ask, answers);
    if (ask->svg)
        good &= write_svg(ask, answers);
    return good;
}
