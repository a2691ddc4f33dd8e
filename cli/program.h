/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - where the other programs of Rondo stand: beside the command, or in libexec. */
#ifndef RONDO_CLI_PROGRAM_H
#define RONDO_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path of a program; `folder` is where a build tree has it, beside that of the command. If
 * `only` is neither NULL nor empty, nothing but that folder is searched.
 */
bool program_find(const char *name, const char *folder, const char *only, char *path, size_t room);

/* rondo-train. 0, or -1 after a message that begins with `command`. */
int train_find(const char *command, char *path, size_t room);

#endif
