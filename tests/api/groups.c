/* SPDX-License-Identifier: BSD-3-Clause */
/* groups.c - many calls at once, exchanges, and all ranks in one thread. */
#include "bodies.h"

#include <stdlib.h>

enum { FUSED = 12, LONGEST = 40000, EACH = 3001 };

rondo_result bodies_all_reduce(rondo_comm *comm, size_t count, char *sentence)
{
    struct world_data data = {RONDO_INT32, RONDO_SUM, rondo_comm_size(comm), count};
    int32_t *values = calloc(count + 1, sizeof(*values));
    rondo_result result;

    if (!values)
        return world_say(sentence, RONDO_ERROR_MEMORY, "no memory");
    world_fill(&data, rondo_comm_rank(comm), count, values);
    result = rondo_all_reduce(values, values, count, RONDO_INT32, RONDO_SUM, comm, NULL);
    if (result)
        world_say(sentence, result, "all_reduce: %s", rondo_last_error(comm));
    else if (!world_check_reduced(&data, 0, count, values, sentence))
        result = RONDO_ERROR_INTERNAL;
    free(values);
    return result;
}

/* ---- Fused ----------------------------------------------------------------------------------- */

struct fused {
    struct world_data data[FUSED];
    size_t count[FUSED];
    char *values[FUSED];
};

static rondo_result fused_open(struct fused *fused, int rank, int size)
{
    for (int i = 0; i < FUSED; i++) {
        fused->data[i] = (struct world_data){(rondo_type)i, RONDO_SUM, size, (uint64_t)i};
        fused->count[i] = i % 3 == 0 ? LONGEST / (size_t)(i + 1) : (size_t)i;
        fused->values[i] = calloc(fused->count[i] + 1, 8);
        if (!fused->values[i])
            return RONDO_ERROR_MEMORY;
        world_fill(&fused->data[i], rank, fused->count[i], fused->values[i]);
    }
    return RONDO_OK;
}

static rondo_result fused_call(struct fused *fused, rondo_comm *comm)
{
    rondo_result result = rondo_group_start();

    for (int i = 0; i < FUSED && !result; i++)
        result = rondo_all_reduce(fused->values[i], fused->values[i], fused->count[i],
                                  fused->data[i].type, RONDO_SUM, comm, NULL);
    return result ? result : rondo_group_end();
}

static rondo_result fused_check(const struct fused *fused, char *sentence)
{
    for (int i = 0; i < FUSED; i++)
        if (!world_check_reduced(&fused->data[i], 0, fused->count[i], fused->values[i], sentence))
            return RONDO_ERROR_INTERNAL;
    return RONDO_OK;
}

static void fused_close(struct fused *fused)
{
    for (int i = 0; i < FUSED; i++)
        free(fused->values[i]);
}

rondo_result groups_fuse_many_calls(rondo_comm *comm, void *argument, char *sentence)
{
    struct fused fused = {0};
    rondo_result result = fused_open(&fused, rondo_comm_rank(comm), rondo_comm_size(comm));

    if (!result)
        result = fused_call(&fused, comm);
    if (result)
        world_say(sentence, result, "group: %s", rondo_last_error(comm));
    else
        result = fused_check(&fused, sentence);
    fused_close(&fused);
    return result;
}

rondo_result groups_nest(rondo_comm *comm, void *argument, char *sentence)
{
    int64_t a = rondo_comm_rank(comm), b = 1, ranks = rondo_comm_size(comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_all_reduce(&a, &a, 1, RONDO_INT64, RONDO_SUM, comm, NULL);
    if (!result)
        result = rondo_group_start();
    if (!result)
        result = rondo_all_reduce(&b, &b, 1, RONDO_INT64, RONDO_SUM, comm, NULL);
    if (!result)
        result = rondo_group_end(); /* the inner one: nothing has to happen yet */
    if (!result)
        result = rondo_group_end();
    if (result)
        return world_say(sentence, result, "nested groups: %s", rondo_last_error(comm));
    if (a != ranks * (ranks - 1) / 2 || b != ranks)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "sums are %lld and %lld", (long long)a,
                         (long long)b);
    return RONDO_OK;
}

/* ---- Send and receive ------------------------------------------------------------------------ */

static rondo_result exchange(rondo_comm *comm, const char *out, char *in)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    rondo_result result = rondo_group_start();

    /* Peers in an order that would deadlock if the calls waited for each other. */
    for (int i = 0; i < size && !result; i++) {
        size_t peer = (size_t)((rank + i) % size);

        result = rondo_recv(in + peer * EACH, EACH, RONDO_UINT8, (int)peer, comm, NULL);
        if (!result)
            result = rondo_send(out + peer * EACH, EACH, RONDO_UINT8, (int)peer, comm, NULL);
    }
    return result ? result : rondo_group_end();
}

rondo_result groups_exchange_with_all(rondo_comm *comm, void *argument, char *sentence)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    struct world_data data = {RONDO_UINT8, WORLD_MOVED, size, 7};
    char *out = calloc((size_t)size, EACH), *in = calloc((size_t)size, EACH);
    rondo_result result = out && in ? RONDO_OK : RONDO_ERROR_MEMORY;

    if (!result) {
        world_fill(&data, rank, (size_t)size * EACH, out);
        result = exchange(comm, out, in);
        if (result)
            world_say(sentence, result, "exchange: %s", rondo_last_error(comm));
    }
    for (int r = 0; r < size && !result; r++)
        if (!world_check_moved(&data, r, (size_t)rank * EACH, EACH, in + (size_t)r * EACH,
                               sentence))
            result = RONDO_ERROR_INTERNAL;
    free(out);
    free(in);
    return result;
}

/* A token goes round without groups: sends block until received, so the order matters. */
rondo_result groups_send_recv_chain(rondo_comm *comm, void *argument, char *sentence)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    size_t counts[] = {1, 0, 5, LONGEST};
    struct world_data data = {RONDO_FLOAT32, WORLD_MOVED, size, 11};
    float *values = calloc(LONGEST, sizeof(*values));
    rondo_result result = values ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !result; i++) {
        if (rank == 0)
            world_fill(&data, 0, counts[i], values);
        else
            result = rondo_recv(values, counts[i], RONDO_FLOAT32, rank - 1, comm, NULL);
        if (!result && rank + 1 < size)
            result = rondo_send(values, counts[i], RONDO_FLOAT32, rank + 1, comm, NULL);
        if (result)
            world_say(sentence, result, "chain: %s", rondo_last_error(comm));
        else if (!world_check_moved(&data, 0, 0, counts[i], values, sentence))
            result = RONDO_ERROR_INTERNAL;
    }
    free(values);
    return result;
}

/* ---- The same group again -------------------------------------------------------------------- */

enum { REPEAT_COUNT = 900, REPEAT_PLACES = 2, REPEATS = 5 };

/* A message to the right and one from the left; `third`: and a sum. */
static rondo_result pass_on(rondo_comm *comm, const int32_t *out, int32_t *in, size_t count,
                            int32_t *third)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(out, count, RONDO_INT32, (rank + 1) % size, comm, NULL);
    if (!result)
        result = rondo_recv(in, count, RONDO_INT32, (rank + size - 1) % size, comm, NULL);
    if (!result && third)
        result = rondo_all_reduce(third, third, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    return result ? result : rondo_group_end();
}

/* Calls so often that the short way of repeated groups is taken, with new values each time. */
static rondo_result pass_repeatedly(rondo_comm *comm, int32_t *out, int32_t *in, size_t count,
                                    char *sentence)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    int left = (rank + size - 1) % size;

    for (int round = 0; round < REPEATS; round++) {
        int32_t ranks = 1, *third = round == REPEATS - 2 ? &ranks : NULL;
        rondo_result result;

        for (size_t i = 0; i < count; i++)
            out[i] = rank * 100000 + round * 10000 + (int32_t)i;
        result = pass_on(comm, out, in, count, third);
        if (result)
            return world_say(sentence, result, "round %d: %s", round, rondo_last_error(comm));
        for (size_t i = 0; i < count; i++)
            if (in[i] != left * 100000 + round * 10000 + (int32_t)i)
                return world_say(sentence, RONDO_ERROR_INTERNAL, "round %d of %zu: [%zu] is %d",
                                 round, count, i, in[i]);
        if (third && ranks != size)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "the sum is %d", ranks);
    }
    return RONDO_OK;
}

/* Each group of calls differs from the one before in one thing: count, output, input. */
rondo_result groups_repeat(rondo_comm *comm, void *argument, char *sentence)
{
    static const size_t counts[] = {2, 3, 0, 100, REPEAT_COUNT};
    int32_t *values = calloc((size_t)2 * REPEAT_PLACES * REPEAT_COUNT, sizeof(*values));
    int32_t *out = values, *in = values ? values + (size_t)REPEAT_PLACES * REPEAT_COUNT : NULL;
    rondo_result result = values ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !result; i++) {
        result = pass_repeatedly(comm, out, in, counts[i], sentence);
        if (!result)
            result = pass_repeatedly(comm, out, in + REPEAT_COUNT, counts[i], sentence);
        if (!result)
            result =
                pass_repeatedly(comm, out + REPEAT_COUNT, in + REPEAT_COUNT, counts[i], sentence);
    }
    free(values);
    return result;
}

/* Two lengths may have the same place among decisions that are remembered. */
rondo_result groups_repeat_two_lengths(rondo_comm *comm, void *argument, char *sentence)
{
    enum { LENGTHS = 16, GROUPS = 4 };
    int rank = rondo_comm_rank(comm);
    float out[LENGTHS] = {0}, in[LENGTHS];
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < LENGTHS * LENGTHS * GROUPS && !result; i++) {
        size_t lengths[] = {1 + i / GROUPS % LENGTHS, 1 + i / GROUPS / LENGTHS};

        result = rondo_group_start();
        if (!result)
            result = rondo_send(out, lengths[rank], RONDO_FLOAT32, 1 - rank, comm, NULL);
        if (!result)
            result = rondo_recv(in, lengths[1 - rank], RONDO_FLOAT32, 1 - rank, comm, NULL);
        result = result ? result : rondo_group_end();
        if (result)
            return world_say(sentence, result, "%zu and %zu: %s", lengths[0], lengths[1],
                             rondo_last_error(comm));
    }
    return result;
}

/* A communicator that is opened where one was closed is another one. */
rondo_result groups_repeat_after_opening(char *sentence)
{
    int32_t out[4], in[4];
    rondo_result result = RONDO_OK;

    for (int i = 0; i < 4 && !result; i++) {
        rondo_comm *comm = NULL;

        result = rondo_comm_open_all(1, NULL, &comm);
        if (result)
            return world_say(sentence, result, "%s", rondo_last_error(NULL));
        result = pass_repeatedly(comm, out, in, 4, sentence);
        rondo_comm_close(comm);
    }
    return result;
}

/* ---- All ranks in one thread ----------------------------------------------------------------- */

static rondo_result open_by_id(int size, rondo_comm **comms)
{
    rondo_unique_id id;
    rondo_result result = rondo_unique_id_create(&id);

    if (!result)
        result = rondo_group_start();
    for (int r = 0; r < size && !result; r++)
        result = rondo_comm_open_id(&id, size, r, NULL, &comms[r]);
    return result ? result : rondo_group_end();
}

static rondo_result sum_ranks(int size, rondo_comm **comms, int64_t *sums)
{
    rondo_result result = rondo_group_start();

    for (int r = 0; r < size && !result; r++) {
        sums[r] = r + 1;
        result = rondo_all_reduce(&sums[r], &sums[r], 1, RONDO_INT64, RONDO_SUM, comms[r], NULL);
    }
    return result ? result : rondo_group_end();
}

rondo_result groups_run_in_one_thread(int size, bool by_id, char *sentence)
{
    rondo_comm *comms[WORLD_RANKS] = {NULL};
    int64_t sums[WORLD_RANKS];
    rondo_result result = by_id ? open_by_id(size, comms) : rondo_comm_open_all(size, NULL, comms);

    if (!result)
        result = sum_ranks(size, comms, sums);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(NULL));
    for (int r = 0; r < size && !result; r++)
        if (sums[r] != size * (size + 1) / 2)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "rank %d has sum %lld", r,
                               (long long)sums[r]);
    for (int r = 0; r < size; r++)
        rondo_comm_close(comms[r]);
    return result;
}
