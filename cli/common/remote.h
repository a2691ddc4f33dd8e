/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - running this program on another host. */
#ifndef RONDO_CLI_COMMON_REMOTE_H
#define RONDO_CLI_COMMON_REMOTE_H

#include <stddef.h>

/* Writes the command for the shell there: this program by its path if it is there, too, else that
 * of the other host's PATH; `arguments` are plain words. */
void remote_command(const char *arguments, char *text, size_t bytes);

#endif
