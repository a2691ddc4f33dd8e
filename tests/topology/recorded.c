/* SPDX-License-Identifier: BSD-3-Clause */
/* recorded.c - opens recorded machines for the tests of this folder. */
#include "recorded.h"

#include "base/fail.h"

#include <criterion/criterion.h>

#include <string.h>

struct topology *recorded_open(const char *name)
{
    struct topology *topology = NULL;
    char file[512];

    snprintf(file, sizeof(file), FIXTURES "/%s.xml", name);
    cr_assert_eq(topology_open(file, &topology), RONDO_OK, "%s", fail_sentence());
    return topology;
}

int recorded_device(const struct topology *topology, const char *name)
{
    for (int i = 0; i < topology_devices(topology); i++)
        if (!strcmp(topology_device_at(topology, i)->name, name))
            return i;
    cr_assert_fail("no device %s", name);
    return -1;
}
