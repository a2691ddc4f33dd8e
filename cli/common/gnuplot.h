/* SPDX-License-Identifier: BSD-3-Clause */
/* gnuplot.h - a picture (SVG) of what a script for gnuplot says. */
#ifndef RONDO_CLI_COMMON_GNUPLOT_H
#define RONDO_CLI_COMMON_GNUPLOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * `print` writes the script, about `what`; it sets the terminal, but no output. `option` is the one
 * that asked for the picture. 0, or -1 and a sentence, which has room for the longest path.
 */
enum { GNUPLOT_NAME = 64, GNUPLOT_SENTENCE = PATH_MAX + 256 };
int gnuplot_write(const char *option, const char *path,
                  void (*print)(const void *what, FILE *script), const void *what,
                  char sentence[GNUPLOT_SENTENCE]);

/* Coloured cells with a text each, about `what`. */
struct gnuplot_map {
    int columns, rows;
    int width, height;        /* of the picture */
    const char *label, *font; /* below the columns; of the texts: ",12" */
    const char *colours;      /* "set cbrange ..." and "set palette ..." */
    void (*row_name)(const void *what, int row, char name[GNUPLOT_NAME]);
    void (*column_name)(const void *what, int column, char name[GNUPLOT_NAME]);
    /* The value that gives a cell its colour, and its text; false: there is no such cell. */
    bool (*cell)(const void *what, int row, int column, double *ret_value, char text[GNUPLOT_NAME]);
};

/* The rows come from the top; the script has its title already. */
void gnuplot_map(const struct gnuplot_map *map, const void *what, FILE *script);

/* "64M": a power of 1024 where the number is a multiple of it. */
void gnuplot_size(size_t bytes, char *text, size_t room);

#endif
