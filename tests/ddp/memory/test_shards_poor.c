/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shards_poor.c - ranks of which one has no memory for shards.
 *
 * That rank is a thread of this process, whose allocations of one kind fail. It does not close
 * its shards before all have heard of it, as closing would tell them as well.
 */
#include "tests/world.h"

#include "base/fail.h"
#include "ddp/shards/shards.h"

#include <criterion/criterion.h>
#include <rondo/train.h>
#include <stdlib.h>
#include <string.h>

enum { SUM = (SHARDS_ALIGN + 1) * sizeof(float) }; /* bytes for sums of the smallest unit's shard */
enum poverty { RICH, NO_HANDLE, NO_STREAM, NO_BUFFER, NO_SUM };

static _Thread_local enum poverty poverty;
static struct world_report report;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
rondo_result __real_rondo_stream_open(rondo_stream **ret_stream);
rondo_result __wrap_rondo_stream_open(rondo_stream **ret_stream);
rondo_result __real_rondo_mem_alloc(size_t bytes, void **ret_memory);
rondo_result __wrap_rondo_mem_alloc(size_t bytes, void **ret_memory);

void *__wrap_calloc(size_t count, size_t size)
{
    return poverty == NO_HANDLE && size == sizeof(rondo_shards) ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
    return poverty == NO_SUM && size == SUM ? NULL : __real_malloc(size);
}

rondo_result __wrap_rondo_stream_open(rondo_stream **ret_stream)
{
    if (poverty == NO_STREAM)
        return rondo_fail(RONDO_ERROR_MEMORY, "this test gives no stream");
    return __real_rondo_stream_open(ret_stream);
}

rondo_result __wrap_rondo_mem_alloc(size_t bytes, void **ret_memory)
{
    if (poverty == NO_BUFFER)
        return rondo_fail(RONDO_ERROR_MEMORY, "this test gives no memory");
    return __real_rondo_mem_alloc(bytes, ret_memory);
}

static void become_poor(const rondo_comm *comm, enum poverty what)
{
    poverty = rondo_comm_rank(comm) == 1 ? what : RICH;
}

static rondo_result expect(rondo_result result, rondo_result wanted, const char *part,
                           char *sentence)
{
    if (result == wanted && strstr(rondo_ddp_last_error(), part))
        return RONDO_OK;
    return world_say(sentence, RONDO_ERROR_INTERNAL, "%s instead of \"%s\": %s",
                     rondo_result_string(result), part, rondo_ddp_last_error());
}

static rondo_result open_poorly(rondo_comm *comm, void *argument, char *sentence)
{
    const rondo_shards_config config = {.struct_size = sizeof(config), .level = 3};
    rondo_shards *shards = NULL;
    rondo_result result;

    become_poor(comm, *(enum poverty *)argument);
    result = rondo_shards_open(&config, comm, &shards);
    poverty = RICH;
    result = expect(result, RONDO_ERROR_MEMORY, "rank 1", sentence);
    if (!result)
        result = rondo_shards_open(&config, comm, &shards);
    rondo_shards_close(shards);
    return result;
}

Test(shards_poor, a_rank_that_cannot_open_shards_tells_all_who_could_go_on)
{
    for (enum poverty what = NO_HANDLE; what <= NO_STREAM; what++)
        cr_expect_eq(world_run_threads(3, open_poorly, &what, &report), 0, "%s", report.summary);
}

static rondo_result gather(rondo_shards *shards)
{
    return rondo_shards_gather(shards, 0);
}

static rondo_result export(rondo_shards *shards)
{
    float value;

    return rondo_shards_export(shards, 0, 0, 0, &value);
}

/* Without gradients of its own a rank takes part with zeros. */
static rondo_result reduce(rondo_shards *shards)
{
    rondo_result result = rondo_shards_reduce(shards, 0);

    return result ? result : rondo_shards_step(shards, NULL, NULL);
}

struct call {
    rondo_result (*make)(rondo_shards *shards);
    enum poverty poverty;
};

static rondo_result work_poorly(rondo_comm *comm, void *argument, char *sentence)
{
    const rondo_shards_config config = {.struct_size = sizeof(config), .level = 3, .states = 1};
    const rondo_parameter_spec spec = {"w", 1, NULL};
    const struct call *call = argument;
    rondo_shards *shards = NULL;
    rondo_result result = rondo_shards_open(&config, comm, &shards), all;
    bool poor = rondo_comm_rank(comm) == 1;

    if (!result)
        result = rondo_shards_add_unit(shards, &spec, 1);
    if (!result) {
        become_poor(comm, call->poverty);
        result = call->make(shards);
        poverty = RICH;
        if (!poor && !result) /* it had done its part before the other one's failed */
            result = rondo_shards_gather(shards, 0);
        result = expect(result, poor ? RONDO_ERROR_MEMORY : RONDO_ERROR_ABORTED,
                        poor ? "Rank 1: " : "Rank 1 aborted", sentence);
    }
    all = rondo_barrier(comm, NULL);
    rondo_shards_close(shards);
    return result ? result : all;
}

Test(shards_poor, a_rank_without_memory_for_its_part_of_a_step_lets_nobody_wait)
{
    const struct call calls[] = {
        {gather, NO_BUFFER}, {export, NO_BUFFER}, {reduce, NO_BUFFER}, {reduce, NO_SUM}};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct call call = calls[i];

        cr_expect_eq(world_run_threads(3, work_poorly, &call, &report), 0, "call %zu: %s", i,
                     report.summary);
    }
}
