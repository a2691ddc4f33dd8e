/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress_standin.c - all bodies of the stand-in's tests without Criterion, for ThreadSanitizer: one
 * after the other, several times, in one process.
 */
#include "tests/standin/bodies.h"

#include <stdio.h>

enum { ROUNDS = 3 };

static const struct {
    const char *name;
    check_body *body;
} bodies[] = {
#define ROW(name) {#name, body_##name},
    STREAM_BODIES(ROW) MEMORY_BODIES(ROW) GRAPH_BODIES(ROW) KERNEL_BODIES(ROW) VMM_BODIES(ROW)};

int main(void)
{
    int bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
            struct check check = {0};
            bodies[i].body(&check);
            bad += check.what != NULL;
            if (check.what)
                printf("round %d, %s: %s:%d: %s: got %ld\n", round, bodies[i].name, check.file,
                       check.line, check.what, check.got);
        }
    }
    return bad != 0;
}
