/* SPDX-License-Identifier: BSD-3-Clause */
/* json_file.h - results as JSON for other programs. */
#ifndef RONDO_CLI_COMMON_JSON_FILE_H
#define RONDO_CLI_COMMON_JSON_FILE_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Write `json` and let go of it; NULL: there was no memory for it. The file "-" is stdout. False:
 * it could not be written, and stderr says why; `command` is "rondo topo".
 */
bool json_file_write(const char *command, const char *file, json_t *json);

/* Puts ? for signs that mean something to a terminal, and for bytes that are no UTF-8, of which
 * Jansson makes no string. */
void json_text_clean(char *text);

#endif
