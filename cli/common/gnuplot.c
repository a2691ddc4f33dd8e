/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gnuplot.c - gnuplot reads the script from a file without a name and writes to `path`, which a
 * script could not quote safely.
 */
#include "cli/common/gnuplot.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(FILE *script, FILE *picture)
{
    pid_t pid = fork();

    if (pid == 0) {
        dup2(fileno(script), STDIN_FILENO);
        dup2(fileno(picture), STDOUT_FILENO);
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* The exit status of gnuplot; -1: there is none. */
static int draw(FILE *script, FILE *picture)
{
    pid_t pid = start(script, picture);
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int gnuplot_write(const char *option, const char *path,
                  void (*print)(const void *what, FILE *script), const void *what,
                  char sentence[GNUPLOT_SENTENCE])
{
    FILE *script = tmpfile();
    FILE *picture = script ? fopen(path, "we") : NULL;
    int status = -1;

    if (picture) {
        print(what, script);
        rewind(script);
        status = draw(script, picture);
        fclose(picture);
        if (status)
            unlink(path);
        if (status == 127)
            snprintf(sentence, GNUPLOT_SENTENCE,
                     "%s needs gnuplot, which is not installed; install it (Debian: apt install "
                     "gnuplot-nox) or draw the --csv file yourself",
                     option);
        else
            snprintf(sentence, GNUPLOT_SENTENCE, "gnuplot could not draw %s", path);
    } else {
        snprintf(sentence, GNUPLOT_SENTENCE, "cannot write %s: %s", path, strerror(errno));
    }
    if (script)
        fclose(script);
    return status ? -1 : 0;
}

static void print_cells(const struct gnuplot_map *map, const void *what, FILE *script)
{
    fprintf(script, "$cells << END\n");
    for (int row = 0; row < map->rows; row++)
        for (int column = 0; column < map->columns; column++) {
            char text[GNUPLOT_NAME];
            double value;

            if (map->cell(what, row, column, &value, text))
                fprintf(script, "%d %d %.4f %s\n", column, map->rows - 1 - row, value, text);
        }
    fprintf(script, "END\n");
}

/* The first name is at `first`, the others a `step` further each. */
static void print_names(void (*name_of)(const void *what, int index, char name[GNUPLOT_NAME]),
                        const void *what, int count, int first, int step, FILE *script)
{
    for (int i = 0; i < count; i++) {
        char name[GNUPLOT_NAME];

        name_of(what, i, name);
        fprintf(script, "%s\"%s\" %d", i ? ", " : "(", name, first + i * step);
    }
    fprintf(script, ") noenhanced\n");
}

void gnuplot_map(const struct gnuplot_map *map, const void *what, FILE *script)
{
    print_cells(map, what, script);
    fprintf(script, "set ytics ");
    print_names(map->row_name, what, map->rows, map->rows - 1, -1, script);
    fprintf(script, "set xtics ");
    print_names(map->column_name, what, map->columns, 0, 1, script);
    fprintf(script,
            "set terminal svg size %d,%d dynamic enhanced font 'Helvetica,13' background "
            "'#ffffff'\n"
            "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\nunset key\nset border 0\n"
            "set tics scale 0\nset xlabel '%s'\n%s"
            "set style fill solid 1.0 border rgb '#ffffff'\n"
            "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror lc palette, "
            "$cells using 1:2:4 with labels font '%s'\n",
            map->width, map->height, map->columns - 1, map->rows - 1, map->label, map->colours,
            map->font);
}

void gnuplot_size(size_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    int unit = 0;

    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, room, "%zu%s", bytes, units[unit]);
}
