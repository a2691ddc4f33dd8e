/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - device memory that the program itself can't touch, where the CPU can do that
 * (protection keys).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void guard_init(void);

/* True if device memory is to be closed while nothing runs. */
bool guard_by_pages(void);

/* Gives the pages the protection `protection` and, as device memory, the key. Returns 0, or -1
 * with errno. */
int guard_protect(void *address, size_t size, int protection);

/* From now on this thread may (or may not) touch device memory. */
void guard_allow(bool allowed);
