/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dlopen.c - programs that come without Rondo can load it later, as interpreters do. */
#include "rondo/rondo.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

Test(dlopen, a_program_that_does_not_link_the_library_can_load_it)
{
    void *library = dlopen(TEST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *(*version)(void);
    void *function;

    cr_assert(library, "%s", dlerror());
    function = dlsym(library, "rondo_version");
    cr_assert(function);
    memcpy(&version, &function, sizeof(function));
    cr_expect_gt(strlen(version()), 0);
}
