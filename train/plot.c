/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - loss and held-out accuracy over steps as SVG, drawn by gnuplot. */
#include "train/curve.h"

#include "train/common/say.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void print_script(const struct curve *curve, const char *title, FILE *to)
{
    print_data(curve, to);
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
            title);
}

/* gnuplot reads the script from one file and writes to the other, so no name has to be quoted. */
static int run_gnuplot(FILE *script, FILE *picture)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        dup2(fileno(script), STDIN_FILENO);
        dup2(fileno(picture), STDOUT_FILENO);
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

rondo_result plot_write(const struct curve *curve, const char *title, const char *path)
{
    FILE *script = tmpfile();
    FILE *picture = script ? fopen(path, "we") : NULL;
    rondo_result result = RONDO_OK;
    int status;

    if (!picture)
        result = say(RONDO_ERROR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    else {
        print_script(curve, title, script);
        rewind(script);
        status = run_gnuplot(script, picture);
        fclose(picture);
        if (status) {
            unlink(path);
            result = status == 127
                         ? say(RONDO_ERROR_UNSUPPORTED,
                               "--svg needs gnuplot, which is not installed; install it (Debian: "
                               "apt install gnuplot-nox), or draw the --csv file yourself")
                         : say(RONDO_ERROR_SYSTEM, "gnuplot could not draw %s", path);
        }
    }
    if (script)
        fclose(script);
    return result;
}
