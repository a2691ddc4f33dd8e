/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * in_use.c - memory that is taken away while a queued call uses it.
 *
 * The others come when the call of rank 0 has told them where its memory is, and waits, and when
 * rank 0 waits as well. What takes the memory away has to wait for the call: else they would write
 * to pages that rank 0 does not see any more, or that belong to somebody else.
 */
#include "bodies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 18 };

struct scene {
    rondo_comm *comm;
    rondo_stream *stream;
    int32_t *values;
};

static void note_thread(void *context)
{
    *(pid_t *)context = gettid();
}

static rondo_result queue(const struct scene *scene)
{
    const rondo_call call = {
        sizeof(call), RONDO_ALL_REDUCE, RONDO_INT32,   RONDO_SUM,  0, scene->values, scene->values,
        COUNT,        scene->comm,      scene->stream, "zero_copy"};
    rondo_result result = RONDO_OK;
    pid_t caller = 0;

    for (int i = 0; i < COUNT; i++)
        scene->values[i] = 1;
    if (rondo_comm_rank(scene->comm))
        world_await_rank(0);
    else
        result = rondo_stream_call(scene->stream, note_thread, &caller);
    if (!result)
        result = rondo_stream_synchronize(scene->stream);
    if (!result)
        result = rondo_collective_call(&call);
    if (!rondo_comm_rank(scene->comm)) {
        world_await_sleep(caller);
        world_will_wait(0);
    }
    return result;
}

static rondo_result check(const struct scene *scene, rondo_result result, char *sentence)
{
    if (!result)
        result = rondo_stream_synchronize(scene->stream);
    if (!result)
        result = rondo_barrier(scene->comm, NULL);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(scene->comm));
    for (int i = 0; i < COUNT; i++)
        if (scene->values[i] != rondo_comm_size(scene->comm))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "element %d is %d, with RONDO_OK", i,
                             (int)scene->values[i]);
    return RONDO_OK;
}

/* Registers with `holder`; rank 0 deregisters, or closes the holder, while the call waits. */
static rondo_result deregister(rondo_comm *comm, rondo_comm *holder, char *sentence)
{
    struct scene scene = {.comm = comm};
    rondo_registration *registration = NULL;
    rondo_result result;

    scene.values = aligned_alloc(4096, COUNT * sizeof(*scene.values));
    result = scene.values ? rondo_stream_open(&scene.stream) : RONDO_ERROR_MEMORY;
    if (!result)
        result =
            rondo_comm_register(holder, scene.values, COUNT * sizeof(*scene.values), &registration);
    if (!result)
        result = queue(&scene);
    if (!result && holder == comm)
        result = rondo_comm_deregister(comm, registration);
    if (holder != comm)
        rondo_comm_close(holder);
    result = check(&scene, result, sentence);
    rondo_stream_close(scene.stream);
    free(scene.values);
    return result;
}

rondo_result in_use_deregister(rondo_comm *comm, void *argument, char *sentence)
{
    return deregister(comm, comm, sentence);
}

rondo_result in_use_close_another(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_comm *holder;
    rondo_result result = rondo_comm_dup(comm, &holder);

    return result ? result : deregister(comm, holder, sentence);
}

/* The next block that rank 0 gets lies where its memory was: nobody may write there. */
static rondo_result check_fresh(rondo_comm *comm, char *sentence)
{
    void *fresh = NULL;
    rondo_result result = rondo_mem_alloc(COUNT * sizeof(int32_t), &fresh);
    const int32_t *values = fresh;

    if (!result)
        result = rondo_barrier(comm, NULL);
    for (int i = 0; i < COUNT && !result; i++)
        if (values[i])
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "element %d of fresh memory is %d",
                               i, (int)values[i]);
    rondo_mem_free(fresh);
    return result;
}

rondo_result in_use_free(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene = {.comm = comm};
    void *memory = NULL;
    rondo_result result = rondo_mem_alloc(COUNT * sizeof(int32_t), &memory);

    scene.values = memory;
    if (!result)
        result = rondo_stream_open(&scene.stream);
    if (!result)
        result = queue(&scene);
    if (!result && rondo_comm_rank(comm))
        result = rondo_stream_synchronize(scene.stream);
    if (!result)
        result = rondo_mem_free(memory);
    if (!result)
        result = check_fresh(comm, sentence);
    if (!result)
        result = rondo_stream_synchronize(scene.stream);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    rondo_stream_close(scene.stream);
    return result;
}
