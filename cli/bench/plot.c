/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - time and bandwidth over size as SVG, drawn by gnuplot. */
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/gnuplot.h"

#include <string.h>

/* Distinct also for most who confuse red and green. */
static const char *const colors[BENCH_LIBRARIES_MAX] = {"#d1495b", "#00798c", "#edae49", "#5c5c7a",
                                                        "#9a9a9a"};

static bool has_points(const struct bench_sweep *sweep, int library)
{
    bool any = false;

    for (int i = 0; i < sweep->size_count; i++)
        any = any || (sweep->sizes[i].results[library].available && sweep->sizes[i].bytes > 0);
    return any;
}

static void print_data(const struct bench_sweep *sweep, FILE *to)
{
    for (int library = 0; library < sweep->options->library_count; library++) {
        fprintf(to, "$data%d << END\n", library);
        for (int i = 0; i < sweep->size_count; i++) {
            const struct bench_size *size = &sweep->sizes[i];

            if (size->results[library].available && size->bytes > 0)
                fprintf(to, "%zu %g %g\n", size->bytes, size->results[library].median * 1e6,
                        bench_bus_bandwidth(sweep, size, library) / 1e9);
        }
        fprintf(to, "END\n");
    }
}

/* Ticks at powers of 4 at most eight times: 8, 64, 512, 4K, 32K, ... */
static void print_ticks(const struct bench_sweep *sweep, FILE *to)
{
    size_t low = sweep->sizes[0].bytes;
    size_t high = low;
    const char *comma = "";
    int step = 1;

    for (int i = 0; i < sweep->size_count; i++) {
        low = sweep->sizes[i].bytes < low ? sweep->sizes[i].bytes : low;
        high = sweep->sizes[i].bytes > high ? sweep->sizes[i].bytes : high;
    }
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

    fprintf(to, "set title '%s' font ',15'\nplot ", title);
    for (int i = 0; i < sweep->options->library_count; i++) {
        if (!has_points(sweep, i))
            continue;
        fprintf(to,
                "%s$data%d using 1:%d with linespoints lw 2.5 pt 7 ps 0.45 lc rgb '%s' title '%s'",
                comma, i, column, colors[i], sweep->groups[i].library);
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
    print_data(sweep, to);
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
    print_ticks(sweep, to);
    fprintf(to, "set ylabel 'microseconds, lower is better'\n");
    print_panel(sweep, "Time of a call", 2, to);
    fprintf(to, "unset logscale y\nset format y '%%g'\nset yrange [0:*]\n");
    fprintf(to, "set ylabel 'GB/s, higher is better'\n");
    print_panel(sweep, "Bus bandwidth", 3, to);
    fprintf(to, "unset multiplot\n");
}
