/* SPDX-License-Identifier: BSD-3-Clause */
/* answer.c - simulates each algorithm at each size. */
#include "cli/simulate/simulate.h"

#include "base/clock.h"
#include "base/fail.h"
#include "bench/collective.h"
#include "collectives/levels/grouping.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS_OF_ALL = 24000000 }; /* an algorithm that was not asked for by its name is left out */

struct writer {
    struct simulate_plans plans; /* first: it is what the simulator knows of this */
    const struct algorithm *algorithm;
    struct plan_request request;
};

static rondo_result read_plan(const struct simulate_plans *plans, int rank,
                              struct plan_reader *reader, struct plan **ret_shape)
{
    const struct writer *writer = (const struct writer *)plans;
    struct plan_request request = writer->request;

    request.rank = rank;
    return algorithm_read(writer->algorithm, &request, reader, ret_shape);
}

/* Hosts are the groups of ranks; none where that would be no grouping. */
static rondo_result group_by_host(const struct ask *ask, struct grouping **ret_groups)
{
    int *hosts = NULL;
    rondo_result result;

    *ret_groups = NULL;
    if (ask->machine.host_ranks == 1 || ask->ranks <= ask->machine.host_ranks)
        return RONDO_OK;
    hosts = malloc((size_t)ask->ranks * sizeof(*hosts));
    if (!hosts)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the hosts of %d ranks.",
                          ask->ranks);
    for (int i = 0; i < ask->ranks; i++)
        hosts[i] = i / ask->machine.host_ranks;
    result = grouping_make(ask->ranks, hosts, ret_groups);
    free(hosts);
    return result;
}

static double block_bytes(const struct ask *ask, double bytes)
{
    rondo_collective collective = (rondo_collective)ask->collective;
    int in = plan_input_blocks(collective, ask->ranks, ask->root, ask->root);
    int out = plan_output_blocks(collective, ask->ranks, ask->root, ask->root);
    int blocks = in > out ? in : out;

    return collective == RONDO_BARRIER ? 0 : bytes / (blocks > 0 ? blocks : 1);
}

static void fill_in(const struct ask *ask, const struct programs *programs,
                    const struct simulate_result *times, struct answer *answer)
{
    int named = bench_collective_find(rondo_collective_name((rondo_collective)ask->collective));

    answer->seconds = times->seconds;
    answer->algorithm_bw = times->seconds > 0 ? answer->bytes / times->seconds : 0;
    answer->bus_bw = named < 0 ? 0
                               : answer->algorithm_bw *
                                     bench_bus_factor((enum bench_collective)named, ask->ranks);
    answer->segments = times->segments;
    answer->simulated = times->simulated;
    answer->doubt = times->doubt;
    answer->cut = times->cut;
    answer->events = times->events;
    answer->fold = programs->fold;
    path_busiest(programs, times, answer);
    if (times->records_complete)
        path_places(programs, times, answer);
}

static struct simulate_call call_of(const struct ask *ask, double bytes)
{
    return (struct simulate_call){.block_bytes = block_bytes(ask, bytes),
                                  .segments_most = ask->segments,
                                  .jitter = ask->jitter,
                                  .seed = (uint64_t)ask->seed,
                                  .slow = ask->slow,
                                  .slow_count = ask->slow_count,
                                  .records = ask->path};
}

static rondo_result answer_size(const struct ask *ask, struct programs *programs, double bytes,
                                struct answer *ret_answer)
{
    struct simulate_call call = call_of(ask, bytes);
    struct simulate_result times;
    double begun = clock_seconds();
    rondo_result result = simulate_run(programs, &call, &times);

    if (result)
        return result;
    ret_answer->bytes = bytes;
    fill_in(ask, programs, &times, ret_answer);
    ret_answer->wall = clock_seconds() - begun;
    simulate_close(&times);
    return RONDO_OK;
}

static rondo_result open_programs(const struct ask *ask, const struct algorithm *algorithm,
                                  const struct grouping *groups, struct programs **ret_programs)
{
    struct writer writer = {.plans = {read_plan, ask->ranks},
                            .algorithm = algorithm,
                            .request = {.collective = (rondo_collective)ask->collective,
                                        .size = ask->ranks,
                                        .root = ask->root,
                                        .groups = groups}};
    struct simulate_setup setup = {
        .machine = ask->machine,
        .folds = !ask->whole && !ask->slow_count && !(ask->jitter > 0),
        .faults = ask->faults,
        .fault_count = ask->fault_count,
        .steps_most = ask->all ? STEPS_OF_ALL : 0,
    };

    return programs_open(&writer.plans, &setup, ret_programs);
}

static rondo_result answer_algorithm(const struct ask *ask, const struct algorithm *algorithm,
                                     const struct grouping *groups, struct answers *answers)
{
    struct programs *programs = NULL;
    rondo_result result = open_programs(ask, algorithm, groups, &programs);

    for (int i = 0; i < ask->fault_count && !result; i++)
        answers->passed[i] |= programs_pass(programs, &ask->faults[i].hop);
    for (int i = 0; i < ask->size_count && !result; i++) {
        struct answer *answer = &answers->list[answers->count];

        answer->algorithm = algorithm;
        result = answer_size(ask, programs, ask->sizes[i], answer);
        answers->count += !result;
    }
    programs_close(programs);
    return result;
}

/* We know only in the end which answer is the last one, so we simulate that one once more. */
static bool write_time_line(const struct ask *ask, const struct grouping *groups,
                            const struct answer *last)
{
    struct simulate_call call = call_of(ask, last->bytes);
    struct programs *programs = NULL;
    struct simulate_result times;
    rondo_result result = open_programs(ask, last->algorithm, groups, &programs);
    bool written = false;

    call.records = true;
    if (!result)
        result = simulate_run(programs, &call, &times);
    if (result)
        fprintf(stderr, "rondo simulate: %s: %s\n", last->algorithm->name, fail_sentence());
    else {
        written = chrome_write(ask->chrome, programs, &times);
        simulate_close(&times);
    }
    programs_close(programs);
    return written;
}

/* Forms that read memory of peers are for ranks that can: those of one host, or of groups. */
static bool has_reach(const struct ask *ask, const struct algorithm *algorithm,
                      const struct grouping *groups)
{
    const struct form *form = &algorithm->forms[ask->collective];

    return !(form->promises & PROMISE_PEER_MEMORY) || !groups ||
           (algorithm->levels && ask->machine.host_ranks > 1);
}

static void find_fastest(const struct ask *ask, struct answers *answers)
{
    for (int s = 0; s < ask->size_count; s++) {
        struct answer *fastest = NULL;

        for (int i = 0; i < answers->count; i++) {
            struct answer *answer = &answers->list[i];

            if (answer->bytes <= ask->sizes[s] && answer->bytes >= ask->sizes[s] &&
                (!fastest || answer->seconds < fastest->seconds))
                fastest = answer;
        }
        if (fastest)
            fastest->fastest = true;
    }
}

/* A link that nothing takes may be one that this machine does not have. */
static void tell_idle_links(const struct ask *ask, const struct answers *answers)
{
    for (int i = 0; i < ask->fault_count && answers->count; i++) {
        const struct hop *hop = &ask->faults[i].hop;
        char part[16] = "";

        if (answers->passed[i])
            continue;
        if (hop->sub >= 0)
            snprintf(part, sizeof(part), "/%d", hop->sub);
        fprintf(stderr,
                "rondo simulate: no message passes %s:%d%s, so that --link changes nothing\n",
                route_word(hop->kind), hop->owner, part);
    }
}

int answer_all(const struct ask *ask, struct answers *ret_answers)
{
    struct answers answers = {0};
    struct grouping *groups = NULL;
    int status = 0;

    answers.list = calloc((size_t)(ask->list_count * ask->size_count) + 1, sizeof(*answers.list));
    if (!answers.list || group_by_host(ask, &groups)) {
        fprintf(stderr, "rondo simulate: %s\n", answers.list ? fail_sentence() : "out of memory");
        free(answers.list);
        return 1;
    }
    for (int i = 0; i < ask->list_count && !status; i++) {
        rondo_result result = RONDO_OK;
        bool reach = has_reach(ask, ask->list[i], groups) &&
                     !(ask->machine.host_ranks == 1 && ask->ranks > 1 &&
                       ask->list[i]->forms[ask->collective].promises & PROMISE_PEER_MEMORY);

        if (!reach && ask->all)
            continue;
        if (!reach)
            result = rondo_fail(RONDO_ERROR_UNSUPPORTED,
                                "it reads memory of ranks on other hosts, which cannot be mapped.");
        else
            result = answer_algorithm(ask, ask->list[i], groups, &answers);
        if (result)
            fprintf(stderr, "rondo simulate: %s: %s\n", ask->list[i]->name, fail_sentence());
        status = result && !ask->all;
    }
    if (!answers.count ||
        (ask->chrome && !write_time_line(ask, groups, &answers.list[answers.count - 1])))
        status = 1;
    grouping_close(groups);
    tell_idle_links(ask, &answers);
    find_fastest(ask, &answers);
    *ret_answers = answers;
    return status;
}
