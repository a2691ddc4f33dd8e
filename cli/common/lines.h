/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - files of the kernel, which have a fact per line. */
#ifndef RONDO_CLI_COMMON_LINES_H
#define RONDO_CLI_COMMON_LINES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Takes what comes after `key` in the first line that begins with it. False, and "": there is none.
 */
bool line_after(const char *file, const char *key, char *text, size_t room);

#endif
