/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_execute.c - the executor on several ranks, for ThreadSanitizer: no Criterion. */
#include "base/collective.h"
#include "base/fail.h"
#include "tests/cuda/rehearsal.h"

#include <stdio.h>

static const char *run(struct troupe *troupe, size_t count, unsigned blocks)
{
    const char *complaint = NULL;

    for (int i = 0; algorithms[i] && !complaint; i++) {
        struct rehearsal rehearsal = {.algorithm = algorithms[i],
                                      .collective = RONDO_ALL_REDUCE,
                                      .op = {.type = RONDO_FLOAT32, .function = KERNEL_SUM},
                                      .count = count,
                                      .blocks = blocks,
                                      .repeat = 3};

        if (algorithms[i]->forms[RONDO_ALL_REDUCE].write)
            complaint = rehearse(troupe, &rehearsal);
    }
    return complaint;
}

int main(void)
{
    const struct cuda_devcomm_shape shape = {.slots = 3, .slot_bytes = 128 << 10};
    struct troupe troupe;
    const char *complaint;

    if (!troupe_open(&troupe, 3, &shape)) {
        fprintf(stderr, "%s\n", fail_sentence());
        return 1;
    }
    complaint = run(&troupe, 500, 1);
    if (!complaint)
        complaint = run(&troupe, 50001, 2);
    if (complaint)
        fprintf(stderr, "%s\n", complaint);
    troupe_close(&troupe);
    return complaint != NULL;
}
