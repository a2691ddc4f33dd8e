/* SPDX-License-Identifier: BSD-3-Clause */
/* call.c - a simulated call of an algorithm. */
#include "tests/plan/simulate/call.h"

#include "collectives/levels/grouping.h"

#include <stdlib.h>
#include <string.h>

static rondo_result read_plan(const struct simulate_plans *plans, int rank,
                              struct plan_reader *reader, struct plan **ret_shape)
{
    const struct call_plans *own = (const struct call_plans *)plans;
    struct plan_request request = own->request;

    request.rank = rank;
    return algorithm_read(own->algorithm, &request, reader, ret_shape);
}

bool call_plans_make(const char *algorithm, rondo_collective collective, int ranks, int root,
                     struct call_plans *ret_plans)
{
    const struct algorithm *found = algorithm_find(algorithm);

    *ret_plans =
        (struct call_plans){.plans = {read_plan, ranks},
                            .algorithm = found,
                            .request = {.collective = collective, .size = ranks, .root = root}};
    return found && algorithm_has(found, collective, ranks, root);
}

static rondo_result group_by_host(const struct machine *machine, int ranks,
                                  struct grouping **ret_groups)
{
    int *hosts = calloc((size_t)ranks, sizeof(*hosts));
    rondo_result result = hosts ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int i = 0; i < ranks && hosts; i++)
        hosts[i] = i / machine->host_ranks;
    if (!result && machine->host_ranks > 1 && ranks > machine->host_ranks)
        result = grouping_make(ranks, hosts, ret_groups);
    free(hosts);
    return result;
}

bool call_run(const struct call *call, struct outcome *ret_outcome)
{
    struct simulate_setup setup = {
        .folds = !call->unfolded, .faults = call->faults, .fault_count = call->fault_count};
    struct simulate_call run = call->more;
    struct outcome outcome = {.result = RONDO_OK};
    struct grouping *groups = NULL;
    struct call_plans plans;

    if (!call_plans_make(call->algorithm, call->collective, call->ranks, call->root, &plans))
        return false;
    run.block_bytes = call->block_bytes;
    run.records = call->records;
    outcome.result = machine_parse(call->topology, &setup.machine);
    if (!outcome.result)
        outcome.result = group_by_host(&setup.machine, call->ranks, &groups);
    plans.request.groups = groups;
    if (!outcome.result)
        outcome.result = programs_open(&plans.plans, &setup, &outcome.programs);
    if (!outcome.result)
        outcome.result = simulate_run(outcome.programs, &run, &outcome.times);
    grouping_close(groups);
    *ret_outcome = outcome;
    return true;
}

void call_close(struct outcome *outcome)
{
    if (!outcome->result)
        simulate_close(&outcome->times);
    programs_close(outcome->programs);
    memset(outcome, 0, sizeof(*outcome));
}
