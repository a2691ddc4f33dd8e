/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - the environment as launchers write it: lines NAME=VALUE. Who am I, how many are we,
 * where do we meet (comm/rendezvous/launch.c, launch_job.c, launch_place.c).
 */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "comm/rendezvous/bootstrap.h"
#include "comm/rendezvous/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    char *lines = fuzz_text(&input, '\0');
    struct launch launch;

    fuzz_environment(lines);
    if (launch_read(&launch)) {
        fuzz_expect(*fail_sentence(), "an error has a sentence");
    } else {
        fuzz_expect(launch.size >= 1 && launch.size <= WIRE_RANKS_MAX && launch.rank >= 0 &&
                        launch.rank < launch.size,
                    "the rank is one of so many");
        fuzz_expect(launch.local_size <= launch.size, "no more ranks are here than there are");
        fuzz_expect(memchr(launch.place.address, '\0', sizeof(launch.place.address)),
                    "an address has an end");
    }
    fuzz_environment(NULL);
    free(lines);
    return 0;
}
