/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_p2p.c - messages with tags between ranks that are threads, without Criterion: for
 * ThreadSanitizer. Says what failed and ends with 1. */
#include "tests/api/p2p/p2p.h"

#include <stdio.h>

int main(void)
{
    static const struct {
        const char *what;
        world_body body;
    } bodies[] = {
        {"messages that cross", p2p_cross},
        {"messages of any source", p2p_take_from_any},
        {"messages that are looked for", p2p_probe_first},
        {"messages beside collectives", p2p_beside_collectives},
        {"messages that nobody waits for", p2p_send_to_busy},
        {"threads that wait", p2p_wait_by_threads},
    };
    static struct world_report report;
    int failed = 0;

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        for (int size = 2; size <= 5; size += 3) {
            int wrong = world_run_threads(size, bodies[i].body, NULL, &report);

            printf("%s %s on %d threads%s%s\n", wrong ? "FAILED" : "passed", bodies[i].what, size,
                   wrong ? ": " : "", wrong ? report.summary : "");
            failed |= wrong;
        }
    return failed != 0;
}
