/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.h - where results go: files that are tried before anything is measured, and "-".
 *
 * "-" is stdout, and then all text for people goes to stderr.
 */
#ifndef RONDO_CLI_COMMON_OUTPUT_H
#define RONDO_CLI_COMMON_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Tries all files that are not NULL. Returns 0, or the exit status, with a sentence on stderr. */
int output_begin(const char *command, const char *csv, const char *json, const char *plot);

/* The file, empty; NULL and errno. */
FILE *output_open(const char *path);
/* Returns false, and errno, if something that was written is lost. */
bool output_close(FILE *file);
/* True if the file can be written more than once: it is neither "-" nor a pipe. */
bool output_again(const char *path);

enum output_colour { OUTPUT_PLAIN = 0, OUTPUT_BOLD, OUTPUT_RED, OUTPUT_GREEN, OUTPUT_COLOURS };

/* Returns what switches stdout's colour; "" if it is no terminal, or the user has set NO_COLOR. */
const char *output_colour(enum output_colour colour);

#endif
