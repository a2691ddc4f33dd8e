/* SPDX-License-Identifier: BSD-3-Clause */
/* rank.c - what a rank does: calls, one of which fails for somebody; a watch over its memory. */
#include "soak.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Steps of a call, where none was made before. */
enum { FEW_STEPS = 8 };

struct rank {
    const struct scene *scene;
    const struct part *part;
    struct stage *stage;
    struct rank_report *report;
    rondo_comm *comm;
    const char *algorithm;
    int number;
    struct memory memory;
    struct world_data data;
    const struct soak_device *device;
    double took; /* seconds of the call before */
    struct fate_post post;
    pthread_t aborter;
    bool aborts;
};

/* Release: who sees the phase sees the report. */
static void enter(struct rank *rank, enum phase phase)
{
    atomic_store_explicit(&rank->stage->phases[rank->number], phase, memory_order_release);
}

static bool is_victim(const struct rank *rank, enum soak_fate kind)
{
    return rank->number == rank->scene->fate.victim && rank->scene->fate.kind == kind;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void prepare(struct rank *rank, unsigned call)
{
    const struct scene *scene = rank->scene;

    rank->data = (struct world_data){.type = scene->type,
                                     .op = scene->op,
                                     .size = scene->size,
                                     .seed = world_hash(scene->seed, call)};
    memory_poison(&rank->memory);
    if (rank->memory.input)
        world_fill(&rank->data, rank->number, rank->memory.input_count, rank->memory.input_view);
    memory_push(&rank->memory);
}

static rondo_result send_around(const struct rank *rank)
{
    const struct scene *scene = rank->scene;
    int right = (rank->number + 1) % scene->size;
    int left = (rank->number + scene->size - 1) % scene->size;
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(rank->memory.input, scene->count, scene->type, right, rank->comm, NULL);
    if (!result)
        result = rondo_recv(rank->memory.output, scene->count, scene->type, left, rank->comm, NULL);
    return result ? result : rondo_group_end();
}

static rondo_result make_call(struct rank *rank)
{
    const struct scene *scene = rank->scene;
    const rondo_call call = {.struct_size = sizeof(call),
                             .collective = scene->collective,
                             .type = scene->type,
                             .op = scene->op < 0 ? 0 : scene->op,
                             .root = scene->root,
                             .input = rank->memory.input,
                             .output = rank->memory.output,
                             .count = scene->count,
                             .comm = rank->comm,
                             .stream = rank->device->stream,
                             .algorithm = rank->algorithm};
    rondo_result result =
        call.collective == RONDO_SEND ? send_around(rank) : rondo_collective_call(&call);

    if (result || !call.stream)
        return result;
    /* No step of a device can be led through here: it is struck after a part of the time. */
    usleep((useconds_t)(1e6 * rank->took * rank->scene->fate.parts / FATE_PARTS));
    fate_strike("a call on a stream");
    result = rondo_stream_synchronize(call.stream);
    if (result)
        return result;
    result = rondo_comm_query(rank->comm);
    rank->report->untold = result != RONDO_OK;
    return result;
}

static bool blocks_are_right(const struct rank *rank, size_t first)
{
    size_t block = rank->scene->count * rondo_type_size(rank->scene->type);

    for (int r = 0; r < rank->scene->size; r++)
        if (!world_check_moved(&rank->data, r, first, rank->scene->count,
                               rank->memory.output_view + (size_t)r * block, rank->report->wrong))
            return false;
    return true;
}

/* Looks at all of the output. */
static bool output_is_right(const struct rank *rank)
{
    const struct scene *scene = rank->scene;
    size_t mine = (size_t)rank->number * scene->count;
    const char *output = rank->memory.output_view;
    char *wrong = rank->report->wrong;

    if (!output)
        return true;
    switch (scene->collective) {
    case RONDO_REDUCE_SCATTER:
        return world_check_reduced(&rank->data, mine, scene->count, output, wrong);
    case RONDO_BROADCAST:
        return world_check_moved(&rank->data, scene->root, 0, scene->count, output, wrong);
    case RONDO_SEND:
        return world_check_moved(&rank->data, (rank->number + scene->size - 1) % scene->size, 0,
                                 scene->count, output, wrong);
    case RONDO_SCATTER:
        return world_check_moved(&rank->data, scene->root, mine, scene->count, output, wrong);
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
        return blocks_are_right(rank, 0);
    case RONDO_ALL_TO_ALL:
        return blocks_are_right(rank, mine);
    default:
        return world_check_reduced(&rank->data, 0, scene->count, output, wrong);
    }
}

/* True if the output is right, and the input as it was. */
static bool is_right(struct rank *rank)
{
    struct memory *memory = &rank->memory;
    bool in_place = rank->scene->in_place && memory->output;

    memory_pull(memory);
    if (memory->input && !in_place &&
        !world_check_moved(&rank->data, rank->number, 0, memory->input_count, memory->input_view,
                           rank->report->wrong))
        return false;
    return output_is_right(rank);
}

/* Makes the calls without a fate; the last one tells of how many steps a call is. */
static rondo_result warm_up(struct rank *rank)
{
    struct rank_report *report = rank->report;

    for (unsigned i = 0; i < rank->scene->warm_ups; i++) {
        double began;
        rondo_result result;

        prepare(rank, i);
        fate_count();
        began = soak_now();
        result = make_call(rank);
        rank->took = soak_now() - began;
        report->steps = fate_counted();
        if (result == RONDO_ERROR_UNSUPPORTED && rank->algorithm) {
            rank->algorithm = NULL; /* all ranks were told the same */
            i--;
        } else if (result) {
            return result;
        } else if (!is_right(rank)) {
            snprintf(report->early, sizeof(report->early), "a call before: %.400s", report->wrong);
            return RONDO_ERROR_INTERNAL;
        }
    }
    return RONDO_OK;
}

/* ---- The call that fails --------------------------------------------------------------------- */

static void *abort_when_told(void *argument)
{
    struct rank *rank = argument;

    while (!atomic_load_explicit(&rank->post.aborts, memory_order_acquire))
        usleep(50);
    rondo_comm_abort(rank->comm);
    atomic_store_explicit(&rank->post.aborted, 1, memory_order_release);
    return NULL;
}

static void arm(struct rank *rank)
{
    const struct fate *fate = &rank->scene->fate;
    struct rank_report *report = rank->report;
    unsigned steps;
    bool at_data;

    rank->post.scene = rank->scene;
    rank->post.stage = rank->stage;
    rank->post.rank = rank->number;
    if (rank->number != fate->victim)
        return;
    if (is_victim(rank, FATE_LATE)) {
        snprintf(report->where, sizeof(report->where), "before the call");
        fate_linger(&rank->post);
        report->after_errors = !fate->in_time;
        return;
    }
    rank->aborts =
        is_victim(rank, FATE_ABORT) && !pthread_create(&rank->aborter, NULL, abort_when_told, rank);
    at_data = fate->at_data && report->steps.data;
    steps = at_data ? report->steps.data : report->steps.all;
    report->moment = (unsigned)(fate->draw % (steps ? steps : FEW_STEPS));
    fate_arm(&rank->post, at_data, report->moment);
}

static void fail_together(struct rank *rank)
{
    struct rank_report *report = rank->report;
    rondo_result result;

    if (is_victim(rank, FATE_CLOSE)) {
        snprintf(report->where, sizeof(report->where), "instead of the call");
        memory_poison(&rank->memory);
        return;
    }
    if (rank->part->skew)
        usleep(rank->part->skew);
    arm(rank);
    result = make_call(rank);
    fate_finish();
    report->ended = soak_now() - rank->stage->began;
    if (result)
        snprintf(report->sentence, sizeof(report->sentence), "%s", rondo_last_error(rank->comm));
    if (!result || report->untold)
        report->untold &= !is_right(rank);
    memory_poison(&rank->memory);
    report->result = result;
    report->called = true;
}

static void close_comm(struct rank *rank)
{
    rondo_comm_close(rank->comm);
    rank->comm = NULL;
    memory_forget_registrations(&rank->memory);
}

static void settle(struct rank *rank)
{
    enum soak_ending ending = rank->part->ending;
    rondo_result result;

    if (rank->aborts)
        pthread_join(rank->aborter, NULL);
    if (ending == CLOSES_FIRST || is_victim(rank, FATE_CLOSE))
        close_comm(rank);
    result = memory_reuse(&rank->memory, rank->part, rank->comm);
    if (result)
        snprintf(rank->report->early, sizeof(rank->report->early), "reuse of memory: %s",
                 rondo_last_error(rank->comm));
    if (ending == CLOSES_AFTER_REUSE && rank->comm)
        close_comm(rank);
}

void rank_run(const struct scene *scene, struct stage *stage, int number, rondo_comm *comm,
              const struct soak_device *device)
{
    struct rank rank = {.scene = scene,
                        .part = &scene->parts[number],
                        .stage = stage,
                        .report = &stage->reports[number],
                        .comm = comm,
                        .device = device,
                        .algorithm = scene->algorithm,
                        .number = number};
    rondo_result result = memory_open(scene, number, comm, &rank.memory);

    if (!result)
        result = warm_up(&rank);
    if (result) {
        world_say(rank.report->early, result, "%s: %s", rondo_result_string(result),
                  rondo_last_error(comm));
        enter(&rank, PHASE_GONE);
        return;
    }
    prepare(&rank, scene->warm_ups);
    enter(&rank, PHASE_READY);
    while (!atomic_load_explicit(&stage->go, memory_order_acquire))
        usleep(50);
    fail_together(&rank);
    enter(&rank, PHASE_ENDED);
    settle(&rank);
    enter(&rank, PHASE_SETTLED);
    while (!atomic_load_explicit(&stage->over, memory_order_acquire))
        usleep(500);
    rank.report->changed =
        memory_changed(&rank.memory, rank.report->touched, sizeof(rank.report->touched));
    memory_close(&rank.memory, rank.comm);
    rondo_comm_close(rank.comm);
    enter(&rank, PHASE_GONE);
}
