/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped.h - files that this process stores into and others read, also after it was killed. */
#ifndef RONDO_BASE_MAPPED_H
#define RONDO_BASE_MAPPED_H

#include <stddef.h>
#include <sys/types.h>

/* Makes a file of `bytes` zeros, whose name must be free, in a folder (or AT_FDCWD), and maps it.
 * Its pages are taken at once: a full file system is an error here, and no signal later. Returns
 * NULL, with errno, if that is not possible; then there is no file. */
void *mapped_create(int folder, const char *name, mode_t mode, size_t bytes);

#endif
