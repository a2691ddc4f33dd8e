/* SPDX-License-Identifier: BSD-3-Clause */
/* gnuplot.h - a picture (SVG) of what a script for gnuplot says. */
#ifndef RONDO_CLI_GNUPLOT_H
#define RONDO_CLI_GNUPLOT_H

#include <stdio.h>

/*
 * `print` writes the script, about `what`; it sets the terminal, but no output. 0, or -1 with a
 * sentence on stderr, which begins with `command`.
 */
int gnuplot_write(const char *command, const char *path,
                  void (*print)(const void *what, FILE *script), const void *what);

/* Coloured cells with a text each. */
struct gnuplot_map {
    int columns, rows;
    int width, height;        /* of the picture */
    const char *label, *font; /* below the columns; of the texts: ",12" */
    const char *colours;      /* "set cbrange ..." and "set palette ..." */
};

/* Draws $cells, which the script has defined: column, row from the bottom, value, text. */
void gnuplot_map(const struct gnuplot_map *map, FILE *script);

/* "64M": a power of 1024 where the number is a multiple of it. */
void gnuplot_size(size_t bytes, char *text, size_t room);

#endif
