/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - time and bandwidth over size as SVG, drawn by gnuplot. */
#include "cli/bench/judge.h"
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/common/gnuplot.h"

#include <math.h>
#include <string.h>

/* Distinct also for most who confuse red and green. */
static const char *const colors[BENCH_LIBRARIES] = {"#d1495b", "#00798c", "#edae49",
                                                    "#5c5c7a", "#3d8b37", "#9a9a9a"};

static bool has_points(const struct bench_sweep *sweep, int library)
{
    bool any = false;

    for (int i = 0; i < sweep->size_count; i++)
        any = any || (sweep->sizes[i].results[library].available && sweep->sizes[i].bytes > 0);
    return any;
}

/* Returns true if any library has points. */
static bool is_drawn(const struct bench_sweep *sweep)
{
    bool any = false;

    for (int i = 0; i < sweep->options->library_count; i++)
        any = any || has_points(sweep, i);
    return any;
}

bool bench_sweeps_have_points(const struct bench_sweeps *sweeps)
{
    bool any = false;

    for (int i = 0; i < sweeps->count; i++)
        any = any || is_drawn(&sweeps->list[i]);
    return any;
}

static bool is_predicted(const struct bench_sweep *sweep, int library)
{
    bool any = false;

    for (int i = 0; i < sweep->size_count; i++)
        any = any || (sweep->sizes[i].results[library].predicted > 0 && sweep->sizes[i].bytes > 0);
    return any;
}

/* Columns: size, time, bus bandwidth; then the band of times, from the minimum to the 90th
 * percentile, which is the time itself where nothing was measured; then the predicted time. */
static void print_data(const struct bench_sweep *sweep, int run, FILE *to)
{
    for (int library = 0; library < sweep->options->library_count; library++) {
        fprintf(to, "$run%dof%d << END\n", run, library);
        for (int i = 0; i < sweep->size_count; i++) {
            const struct bench_size *size = &sweep->sizes[i];
            const struct bench_result *result = &size->results[library];

            if (result->available && size->bytes > 0)
                fprintf(to, "%zu %g %g %g %g %g\n", size->bytes, result->median * 1e6,
                        bench_bus_bandwidth(sweep, size, library) / 1e9, result->min * 1e6,
                        1e6 * (result->noise.p90 > 0 ? result->noise.p90 : result->median),
                        result->predicted > 0 ? result->predicted * 1e6 : NAN);
        }
        fprintf(to, "END\n");
    }
}

/* The band of times behind a line. */
static void print_band(int run, int library, const char *colour, FILE *to)
{
    fprintf(to,
            "$run%dof%d using 1:4:5 with filledcurves fs transparent solid 0.18 noborder lc %s "
            "notitle, ",
            run, library, colour);
}

/* Goes on with the predicted times, as a dashed line; without a name it is not in the key. */
static void print_predicted(int run, int library, const char *colour, const char *name, FILE *to)
{
    fprintf(to, ", $run%dof%d using 1:6 with lines lw 1.5 dt 2 lc %s ", run, library, colour);
    if (name)
        fprintf(to, "title '%s, predicted'", name);
    else
        fprintf(to, "notitle");
}

/* Widens a range to the sizes of a sweep that are drawn. */
static void widen(const struct bench_sweep *sweep, size_t *low, size_t *high)
{
    for (int i = 0; i < sweep->size_count; i++) {
        size_t bytes = sweep->sizes[i].bytes;

        if (bytes > 0 && (bytes < *low || !*low))
            *low = bytes;
        if (bytes > *high)
            *high = bytes;
    }
}

/* Ticks at powers of 4 at most eight times: 8, 64, 512, 4K, 32K, ... */
static void print_ticks(const struct bench_sweep *sweeps, int count, FILE *to)
{
    size_t low = 0, high = 0;
    const char *comma = "";
    int step = 1;

    for (int i = 0; i < count; i++)
        widen(&sweeps[i], &low, &high);
    while (low && (high / low) >> (8 * step))
        step++;
    fprintf(to, "set xrange [%g:%g]\nset xtics (", (double)low / 1.5, (double)high * 1.5);
    for (int shift = 0; shift < 50; shift += 1) {
        size_t at = (size_t)1 << shift;
        char size[32];

        if (at < low || at > high || (shift - 3) % step)
            continue;
        gnuplot_size(at, size, sizeof(size));
        fprintf(to, "%s\"%s\" %zu", comma, size, at);
        comma = ", ";
    }
    fprintf(to, ")\n");
}

static void print_panel(const struct bench_sweep *sweep, const char *title, int column, FILE *to)
{
    const char *comma = "";
    char colour[24];

    fprintf(to, "set title '%s' font ',15'\nplot ", title);
    for (int i = 0; i < sweep->options->library_count; i++) {
        if (!has_points(sweep, i))
            continue;
        snprintf(colour, sizeof(colour), "rgb '%s'", colors[i]);
        fputs(comma, to);
        if (column == 2)
            print_band(0, i, colour, to);
        fprintf(to, "$run0of%d using 1:%d with linespoints lw 2.5 pt 7 ps 0.45 lc %s title '%s'", i,
                column, colour, sweep->groups[i].kind->name);
        if (column == 2 && is_predicted(sweep, i))
            print_predicted(0, i, colour, sweep->groups[i].kind->name, to);
        comma = ", ";
    }
    fprintf(to, "\n");
}

void bench_sweep_plot(const void *result, FILE *to)
{
    const struct bench_sweep *sweep = result;
    const struct bench_call *call = &sweep->options->call;
    char name[64];

    snprintf(name, sizeof(name), "%s", bench_collective_name(call->collective));
    for (char *at = name; *at; at++)
        if (*at == '_')
            *at = ' ';
    print_data(sweep, 0, to);
    fprintf(
        to,
        "set terminal svg size 1200,520 dynamic enhanced font 'Helvetica,13' background '#ffffff'\n"
        "set multiplot layout 1,2 title '%s of %s on %d ranks, memory %s, %s' font ',17'\n"
        "set border 3 lc rgb '#888888'\nset tics nomirror textcolor rgb '#333333'\n"
        "set grid lc rgb '#e4e4e4' lt 1 lw 1\nset key outside top center horizontal samplen 2\n"
        "set logscale xy\nset format y '10^{%%T}'\nset xlabel 'size of the vector (bytes)'\n"
        "set lmargin 10\nset rmargin 3\n",
        name, pattern_type_name(call->type), sweep->groups[0].size, bench_memory_of(sweep, 0),
        call->in_place ? "in place" : "out of place");
    print_ticks(sweep, 1, to);
    fprintf(to, "set ylabel 'microseconds, lower is better'\n");
    print_panel(sweep, "Time of a call; bands: minimum to 90th percentile", 2, to);
    fprintf(to, "unset logscale y\nset format y '%%g'\nset yrange [0:*]\n");
    fprintf(to, "set ylabel 'GB/s, higher is better'\n");
    print_panel(sweep, "Bus bandwidth", 3, to);
    fprintf(to, "unset multiplot\n");
}

/* ---- Many runs: a panel per collective, a line per run --------------------------------------- */

/* Returns true if some of the runs differ from the first in this. */
static bool differ(const struct bench_sweeps *sweeps, enum bench_dimension dimension)
{
    const struct bench_options *first = sweeps->list[0].options;
    bool any = false;

    for (int i = 1; i < sweeps->count; i++) {
        const struct bench_options *other = sweeps->list[i].options;
        const bool differs[BENCH_DIMENSIONS] = {
            [BENCH_BY_RANKS] = first->ranks != other->ranks,
            [BENCH_BY_MEMORY] = first->memory != other->memory,
            [BENCH_BY_COLLECTIVE] = first->call.collective != other->call.collective,
            [BENCH_BY_TYPE] = first->call.type != other->call.type,
            [BENCH_BY_OP] = first->call.op != other->call.op,
            [BENCH_BY_ALGORITHM] = strcmp(first->call.algorithm, other->call.algorithm) != 0,
        };

        any = any || differs[dimension];
    }
    return any;
}

/* Writes what tells this line from others: "ring, 4 ranks, RONDO_SLOTS=8". */
static void name_line(const struct bench_sweeps *sweeps, int run, int library, char *text,
                      size_t room)
{
    const struct bench_sweep *sweep = &sweeps->list[run];
    const struct bench_call *call = &sweep->options->call;
    char ranks[24];
    const struct {
        bool shown;
        const char *text;
    } parts[] = {
        {sweep->options->library_count > 1, sweep->groups[library].kind->name},
        {differ(sweeps, BENCH_BY_ALGORITHM), bench_algorithm_of(sweep, library)},
        {differ(sweeps, BENCH_BY_RANKS), ranks},
        {differ(sweeps, BENCH_BY_MEMORY), bench_memory_of(sweep, library)},
        {differ(sweeps, BENCH_BY_TYPE), pattern_type_name(call->type)},
        {differ(sweeps, BENCH_BY_OP), pattern_op_name(call->op)},
        {*sweep->options->settings != 0, sweep->options->settings},
    };
    size_t used = 0;

    snprintf(ranks, sizeof(ranks), "%d ranks", sweep->groups[0].size);
    text[0] = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && used < room; i++)
        if (parts[i].shown)
            used +=
                (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", parts[i].text);
    for (char *at = text; *at; at++)
        *at = *at == '_' ? ' ' : *at; /* gnuplot would set what follows low */
}

static bool any_predicted(const struct bench_sweeps *sweeps, enum bench_collective collective)
{
    bool any = false;

    for (int run = 0; run < sweeps->count; run++)
        for (int i = 0; i < sweeps->list[run].options->library_count; i++)
            any = any || (sweeps->list[run].options->call.collective == collective &&
                          is_predicted(&sweeps->list[run], i));
    return any;
}

static void print_collective(const struct bench_sweeps *sweeps, enum bench_collective collective,
                             FILE *to)
{
    const char *comma = "plot ";
    char name[160], colour[24];
    int lines = 0;

    snprintf(name, sizeof(name), "%s", bench_collective_name(collective));
    for (char *at = name; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    fprintf(to, "set title '%s%s' font ',15'\n", name,
            any_predicted(sweeps, collective) ? " (dashed: predicted by the cost model)" : "");
    for (int run = 0; run < sweeps->count; run++)
        for (int library = 0; library < sweeps->list[run].options->library_count; library++) {
            if (sweeps->list[run].options->call.collective != collective ||
                !has_points(&sweeps->list[run], library))
                continue;
            name_line(sweeps, run, library, name, sizeof(name));
            snprintf(colour, sizeof(colour), "%d", ++lines);
            fputs(comma, to);
            print_band(run, library, colour, to);
            fprintf(to, "$run%dof%d using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc %s title '%s'",
                    run, library, colour, name);
            if (is_predicted(&sweeps->list[run], library))
                print_predicted(run, library, colour, NULL, to);
            comma = ", ";
        }
    fprintf(to, "\n");
}

void bench_sweeps_plot(const void *result, FILE *to)
{
    const struct bench_sweeps *sweeps = result;
    bool shown[BENCH_QUESTIONS] = {false};
    int panels = 0, columns;

    if (sweeps->expected == 1) {
        bench_sweep_plot(&sweeps->list[0], to);
        return;
    }
    for (int i = 0; i < sweeps->count; i++) {
        enum bench_collective collective = sweeps->list[i].options->call.collective;

        print_data(&sweeps->list[i], i, to);
        if (!shown[collective] && is_drawn(&sweeps->list[i])) {
            shown[collective] = true;
            panels++;
        }
    }
    columns = panels > 1 ? 2 : 1;
    fprintf(
        to,
        "set terminal svg size %d,%d dynamic enhanced font 'Helvetica,13' background '#ffffff'\n"
        "set multiplot layout %d,%d\nset border 3 lc rgb '#888888'\n"
        "set tics nomirror textcolor rgb '#333333'\nset grid lc rgb '#e4e4e4' lt 1 lw 1\n"
        "set key outside right center vertical samplen 2\nset logscale xy\n"
        "set format y '10^{%%T}'\nset xlabel 'size of the vector (bytes)'\n"
        "set ylabel 'microseconds, lower is better'\n",
        900 * columns, 460 * ((panels + columns - 1) / columns), (panels + columns - 1) / columns,
        columns);
    print_ticks(sweeps->list, sweeps->count, to);
    for (int collective = 0; collective < BENCH_QUESTIONS; collective++)
        if (shown[collective])
            print_collective(sweeps, (enum bench_collective)collective, to);
    fprintf(to, "unset multiplot\n");
}
