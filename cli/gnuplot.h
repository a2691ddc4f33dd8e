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

/* "64M": a power of 1024 where the number is a multiple of it. */
void gnuplot_size(size_t bytes, char *text, size_t room);

#endif
