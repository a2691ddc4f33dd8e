/* SPDX-License-Identifier: BSD-3-Clause */
/* train_place.h - where the training program stands: beside the command, or in libexec. */
#ifndef RONDO_CLI_TRAIN_PLACE_H
#define RONDO_CLI_TRAIN_PLACE_H

#include <stddef.h>

/* 0, or -1 after a message that begins with `command`. */
int train_find(const char *command, char *path, size_t room);

#endif
