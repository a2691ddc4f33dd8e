/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * case.h - cases that set the environment before the driver is initialised: each is a process of
 * its own, which Criterion makes.
 */
#pragma once

#include "tests/standin/check.h"

#include <criterion/criterion.h>

static struct check checked;
static struct check *const check = &checked;

static void case_run(void (*body)(void))
{
    body();
    cr_assert(!checked.what, "%s:%d: %s: got %ld", checked.file, checked.line, checked.what,
              checked.got);
}

#define CASE(suite, name)   \
    static void name(void); \
    Test(suite, name)       \
    {                       \
        case_run(name);     \
    }                       \
    static void name(void)
