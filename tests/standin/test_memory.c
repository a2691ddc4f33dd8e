/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_memory.c - runs the bodies of memory_bodies.c and vmm_bodies.c as cases of their own.
 */
#include "tests/standin/bodies.h"

#include <criterion/criterion.h>

#define CASE(name)                                                                       \
    Test(memory, name)                                                                   \
    {                                                                                    \
        struct check check = {0};                                                        \
        body_##name(&check);                                                             \
        cr_assert(!check.what, "%s:%d: %s: got %ld", check.file, check.line, check.what, \
                  check.got);                                                            \
    }

MEMORY_BODIES(CASE)
VMM_BODIES(CASE)
