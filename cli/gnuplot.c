/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gnuplot.c - gnuplot reads the script from a file without a name and writes to `path`, which a
 * script could not quote safely.
 */
#include "cli/gnuplot.h"

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

static int draw(const char *command, FILE *script, const char *path)
{
    FILE *picture = fopen(path, "we");
    int status = 0;
    pid_t pid;

    if (!picture) {
        fprintf(stderr, "%s: cannot write %s: %s\n", command, path, strerror(errno));
        return -1;
    }
    pid = start(script, picture);
    fclose(picture);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid > 0 && status == 0)
        return 0;
    unlink(path);
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fprintf(stderr,
                "%s: --plot needs gnuplot, which is not installed; install it (Debian: apt install "
                "gnuplot-nox) or draw the --csv file yourself\n",
                command);
    else
        fprintf(stderr, "%s: gnuplot could not draw %s\n", command, path);
    return -1;
}

int gnuplot_write(const char *command, const char *path,
                  void (*print)(const void *what, FILE *script), const void *what)
{
    FILE *script = tmpfile();
    int failed;

    if (!script) {
        fprintf(stderr, "%s: no temporary file: %s\n", command, strerror(errno));
        return -1;
    }
    print(what, script);
    rewind(script);
    failed = draw(command, script, path);
    fclose(script);
    return failed;
}

void gnuplot_map(const struct gnuplot_map *map, FILE *script)
{
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
