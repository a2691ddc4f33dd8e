/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_kernels.c - runs the bodies of kernel_bodies.c as cases of their own.
 */
#include "tests/standin/bodies.h"

#include <criterion/criterion.h>

#define CASE(name)                                                                       \
    Test(kernels, name)                                                                  \
    {                                                                                    \
        struct check check = {0};                                                        \
        body_##name(&check);                                                             \
        cr_assert(!check.what, "%s:%d: %s: got %ld", check.file, check.line, check.what, \
                  check.got);                                                            \
    }

KERNEL_BODIES(CASE)
