/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - loss and held-out accuracy over steps as SVG, drawn by gnuplot. */
#include "train/curve.h"

#include "cli/common/gnuplot.h"
#include "train/common/say.h"

#include <inttypes.h>
#include <math.h>

struct picture {
    const struct curve *curve;
    const char *title;
};

static void print_data(const struct curve *curve, FILE *to)
{
    fprintf(to, "$loss << END\n");
    for (size_t i = 0; i < curve_count(curve); i++) {
        const struct curve_point *point = curve_at(curve, i);

        if (isfinite(point->loss))
            fprintf(to, "%" PRIu64 " %.6g\n", point->step, point->loss);
    }
    fprintf(to, "END\n$held << END\n");
    for (size_t i = 0; i < curve_count(curve); i++) {
        const struct curve_point *point = curve_at(curve, i);

        if (point->held_accuracy >= 0)
            fprintf(to, "%" PRIu64 " %.6g %.6g\n", point->step, point->held_loss,
                    100 * point->held_accuracy);
    }
    fprintf(to, "END\n");
}

static void print_script(const void *what, FILE *to)
{
    const struct picture *picture = what;

    print_data(picture->curve, to);
    fprintf(to,
            "set terminal svg size 900,420 dynamic font 'Helvetica,13' background '#ffffff'\n"
            "set title '%s' font ',15'\n"
            "set border 11 lc rgb '#888888'\nset tics nomirror textcolor rgb '#333333'\n"
            "set grid lc rgb '#e4e4e4' lt 1 lw 1\n"
            "set key outside bottom center horizontal samplen 2\n"
            "set xlabel 'step'\nset ylabel 'loss per token'\nset yrange [0:*]\n"
            "set y2label 'held-out accuracy (%%)'\nset y2range [0:100]\nset y2tics 20\n"
            "plot $loss using 1:2 with lines lw 1 lc rgb '#9fc5d1' title 'loss', "
            "$held using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#00798c' "
            "title 'held-out loss', "
            "$held using 1:3 axes x1y2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '#d1495b' "
            "title 'held-out accuracy'\n",
            picture->title);
}

rondo_result plot_write(const struct curve *curve, const char *title, const char *path)
{
    const struct picture picture = {curve, title};
    char sentence[GNUPLOT_SENTENCE];

    if (!curve_count(curve))
        return say(RONDO_ERROR_INVALID, "there is nothing to draw in %s: no step was made", path);
    if (gnuplot_write("--svg", path, print_script, &picture, sentence))
        return say(RONDO_ERROR_SYSTEM, "%s", sentence);
    return RONDO_OK;
}
