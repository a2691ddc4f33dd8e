/* SPDX-License-Identifier: BSD-3-Clause */
/* own_path.h - where the running program stands, to find what is beside it. */
#ifndef RONDO_CLI_COMMON_OWN_PATH_H
#define RONDO_CLI_COMMON_OWN_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* False: it is not known, or does not fit; the path is "" then. */
bool own_path(char *path, size_t room);
/* The folder, without a '/' at its end. */
bool own_folder(char *path, size_t room);

#endif
