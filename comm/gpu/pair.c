/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.c - sends and receives of a batch on a CUDA stream.
 *
 * A message is a mail that says where the sender's buffer is; the receiver's stream copies from
 * there and empties the mail, for which the sender's stream waits. All of a batch must not wait for
 * each other's order, but a stream has one. So they go in rounds, with the k-th message of every
 * pair of ranks in round k:
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
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

/* The messages of a batch that are on their way. */
struct exchange {
    struct gpu_plans *plans;
    struct gpu_flight *flight; /* NULL: in a graph */
    struct gpu_run run;        /* of the message at hand; its operations go on */
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

/* Where the piece of this phase begins in every message. */
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

static void announce(struct exchange *exchange, const struct task *task)
{
    struct gpu_run *run = &exchange->run;

    run->fingerprint = choice_fingerprint(&task->key) | 1;
    run->output = (struct gpu_buffer){0};
    run->input = message_of(exchange, task->input, task);
    if (!run->ops.result)
        run->ops.result = gpu_pair_place(run, &run->input);
    gpu_await_empty(run, task->key.root, GPU_LANE_PAIR);
    gpu_publish(run, task->key.root, GPU_LANE_PAIR, true);
}

static void take(struct exchange *exchange, const struct task *task)
{
    struct gpu_run *run = &exchange->run;
    const struct gpu_plans *plans = exchange->plans;
    const struct gpu_mail *mail = gpu_mail(plans->own, task->key.root, GPU_LANE_PAIR);
    struct cuda_operand from = gpu_mail_operand(&plans->views[plans->comm->rank], mail, true);
    struct cuda_operand to;

    run->fingerprint = choice_fingerprint(&task->key) | 1;
    run->output = message_of(exchange, task->output, task);
    if (!run->ops.result)
        run->ops.result = gpu_pair_place(run, &run->output);
    to = cuda_operand_at(run->output.at);
    gpu_await_mail(run, task->key.root, GPU_LANE_PAIR);
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
    const struct task *task = &batch->tasks[index];
    bool send = task->key.collective == RONDO_SEND;

    if (send == (part == TAKE || part == EMPTY))
        return;
    if (part == EMPTY) {
        gpu_empty(&exchange->run, task->key.root, GPU_LANE_PAIR);
        return;
    }
    gpu_note_step(&exchange->run, (uint32_t)index);
    if (part == ANNOUNCE)
        announce(exchange, task);
    else if (part == TAKE)
        take(exchange, task);
    else
        gpu_await_empty(&exchange->run, task->key.root, GPU_LANE_PAIR);
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

rondo_result gpu_pairs_queue(struct gpu_plans *plans, const struct batch *batch, bool in_graph,
                             CUstream stream)
{
    struct exchange *exchange;
    rondo_result result;
    int pairs = 0;

    for (int i = 0; i < batch->count; i++)
        pairs += collective_is_pair(batch->tasks[i].key.collective);
    if (!pairs)
        return RONDO_OK;
    exchange = calloc(1, sizeof(*exchange));
    if (!exchange)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d messages.", pairs);
    exchange->plans = plans;
    exchange->run.plans = plans;
    exchange->run.ops.cuda = plans->gpu->device.driver;
    exchange->run.ops.stream = stream;
    result =
        in_graph ? RONDO_OK : gpu_flight_open(plans, batch->tasks, batch->count, &exchange->flight);
    exchange->run.flight = exchange->flight;
    if (!result) {
        gpu_watch_add(plans, exchange->flight);
        queue_rounds(exchange, batch);
        gpu_run_close(&exchange->run);
        result = exchange->run.ops.result;
    }
    if (exchange->flight && result)
        gpu_flight_abandon(plans, exchange->flight);
    free(exchange);
    return result;
}
