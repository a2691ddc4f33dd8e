/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.c - sends and receives of a batch on a CUDA stream.
 *
 * A message is a mailbox that says where the sender's buffer is; the receiver's stream copies from
 * there and empties the mailbox, for which the sender's stream waits. All of a batch must not wait
 * for each other's order, but a stream has one. So they go in rounds, with the k-th message of
 * every pair of ranks in round k:
 *
 *     announce all sends | take all receives, as one kernel | say so | wait for the sends
 *
 * Whatever the batches of two ranks look like, they agree on the round of a message, and in a round
 * nobody waits before he has announced. Messages that are too long for the reserve (reserve.c) have
 * several pieces, and their round a phase like this for each.
 */
#include "comm/engine/choose.h"
#include "comm/gpu/plan.h"

#include "base/collective.h"

/* The messages of a batch that are on their way. */
struct exchange {
    struct gpu_plans *plans;
    struct gpu_run run; /* of the message at hand; its operations go on */
    int round;
    size_t piece; /* of the messages of this round */
};

static size_t bytes_of(const struct task *task)
{
    return task->key.count * rondo_type_size(task->key.type);
}

static bool is_in_round(const struct batch *batch, int index, int round)
{
    const struct choice_key *key = &batch->tasks[index].key;
    int before = 0;

    for (int i = 0; i < index; i++)
        before += batch->tasks[i].key.collective == key->collective &&
                  batch->tasks[i].key.root == key->root;
    return before == round;
}

/* The first byte, in every message, of the piece of this phase. */
static size_t start_of(const struct exchange *exchange)
{
    return exchange->piece * exchange->plans->piece_bytes;
}

static bool has_piece(const struct exchange *exchange, const struct task *task)
{
    return !exchange->piece || start_of(exchange) < bytes_of(task);
}

static struct gpu_buffer message_of(const struct exchange *exchange, const void *memory,
                                    const struct task *task)
{
    size_t bytes = bytes_of(task), start = start_of(exchange), most = exchange->plans->piece_bytes;

    return (struct gpu_buffer){.user = memory,
                               .blocks = 1,
                               .pitch = bytes,
                               .start = start,
                               .length = most && bytes - start > most ? most : bytes - start};
}

static void await(struct exchange *exchange, const struct batch *batch, int index, bool data)
{
    gpu_await(&exchange->run, &(struct gpu_wait){.step = (uint32_t)index,
                                                 .peer = batch->tasks[index].key.root,
                                                 .channel = GPU_CHANNEL_PAIR,
                                                 .data = data});
}

static void announce(struct exchange *exchange, const struct batch *batch, int index)
{
    const struct task *task = &batch->tasks[index];
    struct gpu_run *run = &exchange->run;

    run->x.fingerprint = choice_fingerprint(&task->key) | 1;
    run->output = (struct gpu_buffer){0};
    run->input = message_of(exchange, task->input, task);
    if (!run->ops.result)
        run->ops.result = gpu_pair_place(run, &run->input);
    await(exchange, batch, index, false);
    gpu_publish(run, task->key.root, GPU_CHANNEL_PAIR, true);
}

static void take(struct exchange *exchange, const struct batch *batch, int index)
{
    const struct task *task = &batch->tasks[index];
    struct gpu_run *run = &exchange->run;
    const struct gpu_plans *plans = exchange->plans;
    const struct gpu_mailbox *mailbox = gpu_mailbox(plans->own, task->key.root, GPU_CHANNEL_PAIR);
    struct cuda_operand from = gpu_mailbox_operand(&plans->views[plans->comm->rank], mailbox, true);
    struct cuda_operand to;

    run->x.fingerprint = choice_fingerprint(&task->key) | 1;
    run->output = message_of(exchange, task->output, task);
    if (!run->ops.result)
        run->ops.result = gpu_pair_place(run, &run->output);
    to = cuda_operand_at(run->output.at);
    await(exchange, batch, index, true);
    if (run->output.length)
        gpu_copy(run, &from, &to, run->output.length);
    if (run->output.replaced)
        gpu_take_output(run);
}

/* The part of a round that concerns one task. */
enum part { ANNOUNCE, TAKE, EMPTY, WAIT, PARTS };

static void queue_part(struct exchange *exchange, const struct batch *batch, int index,
                       enum part part)
{
    const struct choice_key *key = &batch->tasks[index].key;
    bool send = key->collective == RONDO_SEND;

    if (send == (part == TAKE || part == EMPTY))
        return;
    if (part == ANNOUNCE)
        announce(exchange, batch, index);
    else if (part == TAKE)
        take(exchange, batch, index);
    else if (part == EMPTY)
        gpu_empty(&exchange->run, key->root, GPU_CHANNEL_PAIR);
    else
        await(exchange, batch, index, false);
}

/* False: there are none. What stands in for messages is free again after them. */
static bool queue_phase(struct exchange *exchange, const struct batch *batch)
{
    bool any = false;

    exchange->run.replaced = 0;
    exchange->run.reserved = 0;
    for (enum part part = ANNOUNCE; part < PARTS; part++)
        for (int i = 0; i < batch->count; i++) {
            if (!collective_is_pair(batch->tasks[i].key.collective) ||
                !is_in_round(batch, i, exchange->round) || !has_piece(exchange, &batch->tasks[i]))
                continue;
            any = true;
            queue_part(exchange, batch, i, part);
        }
    return any;
}

static void queue_rounds(struct exchange *exchange, const struct batch *batch)
{
    while (queue_phase(exchange, batch)) {
        exchange->piece++;
        while (exchange->plans->piece_bytes && queue_phase(exchange, batch))
            exchange->piece++;
        exchange->piece = 0;
        exchange->round++;
    }
}

/* The call in flight knows all tasks of the batch, as its progress names them by their number. */
static rondo_result open_inflight(struct gpu_plans *plans, const struct batch *batch,
                                  struct gpu_inflight **ret_inflight)
{
    struct gpu_inflight *inflight = gpu_inflight_open(plans, batch->tasks, batch->count);
    rondo_result result = inflight ? RONDO_OK : RONDO_ERROR_MEMORY;

    *ret_inflight = inflight;
    if (inflight)
        inflight->pairs = true;
    for (int i = 0; i < batch->count && !result; i++) {
        struct task *task = &inflight->tasks[i];
        struct gpu_way way;

        result = gpu_find_way(plans, task, &way);
        if (!result)
            result = gpu_describe(plans, &task->key, way.plan, task->key.count, &task->execution);
    }
    return result;
}

/* Returns how many there are, and which comes first. */
static int count_pairs(const struct batch *batch, const struct choice_key **ret_first)
{
    int count = 0;

    for (int i = batch->count - 1; i >= 0; i--)
        if (collective_is_pair(batch->tasks[i].key.collective)) {
            *ret_first = &batch->tasks[i].key;
            count++;
        }
    return count;
}

rondo_result gpu_pairs_queue(struct gpu_plans *plans, const struct batch *batch, CUstream stream)
{
    struct exchange exchange;
    struct gpu_run *run = &exchange.run;
    const struct choice_key *first = NULL;
    int count = count_pairs(batch, &first);
    rondo_result result = RONDO_OK;

    if (!count)
        return RONDO_OK;
    exchange.plans = plans;
    exchange.round = 0;
    exchange.piece = 0;
    gpu_run_init(plans, stream, run);
    if (!plans->in_graph)
        result = open_inflight(plans, batch, &run->inflight);
    if (!result) {
        gpu_timing_open(run, first, count);
        gpu_watchdog_add(plans, run->inflight);
        queue_rounds(&exchange, batch);
        gpu_run_close(run);
        result = run->ops.result;
    }
    if (result)
        gpu_inflight_abandon(plans, run->inflight);
    return result;
}
