/* SPDX-License-Identifier: BSD-3-Clause */
/* cases.c - worlds of ranks in which some fail as expected. */
#include "cases.h"

#include <stdlib.h>

int recovery_run(int size, bool processes, const char *transport, double timeout, world_body body,
                 void *argument, struct world_report *ret_report)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = size, .processes = processes, .config = &config};
    int failed;

    config.timeout = world_patience(timeout);
    setenv("RONDO_TRANSPORT", transport, 1);
    setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    setenv("RONDO_INTERFACE", "lo", 1);
    failed = world_run(&world, body, argument, ret_report);
    unsetenv("RONDO_TRANSPORT");
    return failed;
}

void await_ranks(int first, int end)
{
    for (int rank = first; rank < end; rank++)
        world_await_rank(rank);
}

rondo_result all_reduce_ones(rondo_comm *comm, int expected, char *sentence)
{
    uint32_t one = 1, sum = 0;
    rondo_result result = rondo_all_reduce(&one, &sum, 1, RONDO_UINT32, RONDO_SUM, comm, NULL);

    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    return sum == (uint32_t)expected
               ? RONDO_OK
               : world_say(sentence, RONDO_ERROR_INTERNAL, "%u of %d ranks", sum, expected);
}
