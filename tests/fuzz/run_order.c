/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_order.c - the list of hosts that `rondo run --hosts` is given, and the order that its agent
 * on another host reads (cli/run/hosts.c, agent.c).
 */
#include "tests/fuzz/fuzz.h"

#include "cli/run/job.h"

#include <stdlib.h>
#include <string.h>

static void read_list(struct fuzz_input *input)
{
    struct run_job job = {.world = (int)fuzz_byte(input)};
    char *list = fuzz_text(input, '\0');

    if (!run_hosts_read(&job, list)) {
        int ranks = 0;

        for (int i = 0; i < job.size; i++)
            ranks += job.hosts[i].slots;
        fuzz_expect(ranks == job.world && job.size <= job.host_count, "every rank has a host");
    }
    free(job.hosts);
    free(list);
}

static void read_order(struct fuzz_input *input)
{
    size_t bytes = (size_t)(input->end - input->at);
    struct run_job job = {0};
    char *order = malloc(bytes + 1);
    const char *folder;

    fuzz_expect(order, "there is memory for an order");
    fuzz_bytes(input, order, bytes);
    order[bytes] = '\0';
    fuzz_environment(NULL);
    if (run_agent_parse(&job, order, bytes + 1, &folder)) {
        fuzz_expect(job.first + job.size <= job.world && job.size >= 1, "ranks are of the job");
        fuzz_expect(folder && job.program[0], "there is a program");
    }
    free(job.program);
    free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};

    if (fuzz_byte(&input) & 1)
        read_list(&input);
    else
        read_order(&input);
    return 0;
}
