/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_nccl.c - the clients that are threads, without Criterion: for ThreadSanitizer. */
#include "bodies.h"

#include <stdio.h>

static int say(const char *what, const char *said)
{
    printf("%s %s%s%s\n", said[0] ? "FAILED" : "passed", what, said[0] ? ": " : "", said);
    fflush(stdout);
    return said[0] != '\0';
}

static int run_threads(void)
{
    static const struct {
        const char *what;
        client_body body;
        bool apart;
    } bodies[] = {
        {"many tensors in a group", groups_of_many_tensors, false},
        {"an exchange", groups_nest_and_exchange, false},
        {"two streams", streams_share_a_communicator, false},
        {"a split", derive_split, false},
        {"a shrink", derive_shrink, false},
        {"joining in the background", ends_join_in_the_background, true},
        {"an abort in mid-flight", ends_abort_in_mid_flight, false},
        {"scaled sums", rest_scaled_sums, false},
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        failed +=
            say(bodies[i].what, client_run(&(struct client_world){.size = 3,
                                                                  .apart = bodies[i].apart,
                                                                  .argument = client_share(4096)},
                                           bodies[i].body));
    return failed;
}

int main(void)
{
    struct client_world world = {.size = 3, .argument = client_share(4096)};
    int failed = run_threads();

    failed += say("a shrink in mid-flight", client_run(&world, derive_shrink_in_mid_flight));
    world.argument = client_share(4096);
    failed += say("a revoked communicator", client_run(&world, derive_revoke));
    world = (struct client_world){.size = 4, .apart = true, .argument = client_share(4096)};
    failed += say("growing", client_run(&world, derive_grow));
    failed += say("all ranks in one thread", client_run_alone(3, false, groups_alone));
    failed += say("all ranks split in one thread", client_run_alone(4, true, groups_split_alone));
    return failed != 0;
}
