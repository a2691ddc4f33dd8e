/* SPDX-License-Identifier: BSD-3-Clause */
/* name.h - names that callers give, kept for longer than their call takes. */
#ifndef RONDO_BASE_CALLER_NAME_H
#define RONDO_BASE_CALLER_NAME_H

#include <stdbool.h>
#include <string.h>

/* Makes `name` point to a copy, which the caller owns; NULL stays NULL. False: out of memory. */
static inline bool name_keep(const char **name, char **ret_copy)
{
    if (!*name)
        return true;
    *name = *ret_copy = strdup(*name);
    return *name;
}

#endif
