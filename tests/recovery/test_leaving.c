/* SPDX-License-Identifier: BSD-3-Clause */
/* test_leaving.c - closing a communicator whose agreement left a rank behind is no failure to those
 * who still use it. */
#include "cases.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

enum { RANKS = 4, LAST = RANKS - 1 };

/* The last rank has ended, nobody's call has failed, and rank 0 closes and ends while rank 1 waits
 * for rank 2. */
static rondo_result wait_for_another(rondo_comm *comm, void *argument, char *sentence)
{
    int failed[RANKS], count = 0, rank = rondo_comm_rank(comm);
    uint32_t number = 7;
    rondo_result result = rondo_barrier(comm, NULL);

    world_will_wait(rank);
    if (!result && rank == LAST) {
        await_ranks(0, LAST); /* they have left the barrier */
        raise(SIGKILL);
    }
    if (!result)
        result = rondo_comm_agree(comm, NULL, failed, &count);
    if (result || count != 1 || failed[0] != LAST)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d failed: %s", count,
                         rondo_last_error(comm));
    if (rank == 1)
        result = rondo_send(&number, 1, RONDO_UINT32, 0, comm, NULL);
    if (rank < 2 && !result)
        result = rondo_recv(&number, 1, RONDO_UINT32, rank ? 2 : 1, comm, NULL);
    if (rank == 0)
        world_await_rank(1);
    if (rank == 2) {
        while (world_await_rank(0))
            continue;
        world_await_rank(1);
        result = rondo_send(&number, 1, RONDO_UINT32, 1, comm, NULL);
    }
    return result ? world_say(sentence, RONDO_ERROR_INTERNAL, "%s", rondo_last_error(comm))
                  : AS_EXPECTED;
}

Test(leaving, who_closes_after_an_agreement_breaks_nothing_for_the_living, .timeout = 60)
{
    struct world_report report;

    recovery_run(RANKS, true, "tcp", 20, wait_for_another, NULL, &report);
    for (int rank = 0; rank < LAST; rank++)
        cr_expect(report.results[rank] == AS_EXPECTED, "rank %d: %s", rank, report.sentences[rank]);
}
