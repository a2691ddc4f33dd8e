/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.c - see p2p.h. */
#include "tests/api/p2p/p2p.h"

#include "tests/api/bodies.h"
#include "tests/log_copy.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes: none, inline, in slots, and with an offer. */
static const size_t lengths[] = {0, 1, 4099, 65536, 65537, 1000003};
enum { LENGTHS = 6, LONG = 65537, LONGEST = 1000003, FEW = 8 };

/* A scene is what a rank has open: its end and transfers. */
struct scene {
    rondo_comm *comm;
    rondo_p2p *p2p;
    int rank, size;
    char *sentence;
    rondo_transfer *transfers[4 * WORLD_RANKS];
    char *memory[4 * WORLD_RANKS];
    int count;
};

static struct world_data data_of(const struct scene *scene, int tag)
{
    return (struct world_data){RONDO_UINT8, WORLD_MOVED, scene->size, (uint64_t)tag};
}

static rondo_result scene_open(struct scene *scene, rondo_comm *comm, char *sentence)
{
    *scene = (struct scene){.comm = comm,
                            .rank = rondo_comm_rank(comm),
                            .size = rondo_comm_size(comm),
                            .sentence = sentence};
    return rondo_p2p_open(comm, &scene->p2p);
}

static rondo_result scene_close(struct scene *scene, rondo_result result)
{
    if (result)
        world_say(scene->sentence, result, "rank %d: %s", scene->rank, rondo_last_error(NULL));
    for (int i = 0; i < scene->count; i++) {
        rondo_transfer_close(scene->transfers[i]);
        free(scene->memory[i]);
    }
    rondo_p2p_close(scene->p2p);
    return result;
}

static rondo_result send(struct scene *scene, int peer, int tag, size_t bytes)
{
    struct world_data data = data_of(scene, tag);
    char *memory = malloc(bytes + 1);

    world_fill(&data, scene->rank, bytes, memory);
    scene->memory[scene->count] = memory;
    return rondo_p2p_send(scene->p2p, memory, bytes, peer, tag, &scene->transfers[scene->count++]);
}

static rondo_result receive(struct scene *scene, int source, int tag, size_t bytes)
{
    int i = scene->count++;

    scene->memory[i] = calloc(1, bytes + 1);
    return rondo_p2p_recv(scene->p2p, scene->memory[i], bytes, source, tag, &scene->transfers[i]);
}

static rondo_result check(const struct scene *scene, int transfer, const rondo_envelope *envelope)
{
    struct world_data data = data_of(scene, envelope->tag);

    return world_check_moved(&data, envelope->source, 0, envelope->bytes, scene->memory[transfer],
                             scene->sentence)
               ? RONDO_OK
               : RONDO_ERROR_INTERNAL;
}

/* Wait for a receive, and compare it with what that sender has sent with that tag. */
static rondo_result finish(const struct scene *scene, int transfer, int source, int tag)
{
    rondo_envelope envelope = {-2, -2, 0};
    rondo_result result = rondo_transfer_wait(scene->transfers[transfer], -1, &envelope);

    if (result)
        return result;
    if ((source >= 0 && envelope.source != source) || (tag >= 0 && envelope.tag != tag))
        return world_say(scene->sentence, RONDO_ERROR_INTERNAL, "from %d with tag %d, not %d, %d",
                         envelope.source, envelope.tag, source, tag);
    return check(scene, transfer, &envelope);
}

static rondo_result finish_all(const struct scene *scene)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < scene->count && !result; i++)
        result = rondo_transfer_wait(scene->transfers[i], -1, NULL);
    return result;
}

rondo_result p2p_take_in_any_order(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    int next, before, first;

    (void)argument;
    next = (scene.rank + 1) % scene.size;
    before = (scene.rank + scene.size - 1) % scene.size;
    for (int tag = 0; tag < LENGTHS && !result; tag++)
        result = send(&scene, next, tag, lengths[tag]);
    first = scene.count;
    for (int tag = LENGTHS - 1; tag >= 0 && !result; tag--)
        result = receive(&scene, before, tag, LONGEST);
    for (int tag = 0; tag < LENGTHS && !result; tag++)
        result = finish(&scene, first + LENGTHS - 1 - tag, before, tag);
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

/* Everybody sends to everybody before anybody receives, and waits for its sends last. */
rondo_result p2p_cross(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    for (int length = 0; length < 2 && !result; length++)
        for (int peer = 0; peer < scene.size && !result; peer++)
            result = send(&scene, peer, length, lengths[2 + 3 * length]);
    for (int length = 1; length >= 0; length--)
        for (int peer = 0; peer < scene.size && !result; peer++) {
            result = receive(&scene, peer, length, LONGEST);
            if (!result)
                result = finish(&scene, scene.count - 1, peer, length);
        }
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

/* Rank 0 takes two messages of each rank, with tags of their own: those with even tags by their
 * tag, in the opposite order, the others as they come. */
rondo_result p2p_take_from_any(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    int tags = 0, all = 2 * scene.size;

    (void)argument;
    for (int i = 0; i < 2 && !result; i++)
        result = send(&scene, 0, 2 * scene.rank + i, lengths[i ? 5 : 2]);
    for (int i = 0; i < all && !result && scene.rank == 0; i++) {
        int tag = i < scene.size ? all - 2 - 2 * i : RONDO_ANY_TAG;
        rondo_envelope envelope = {0};

        result = receive(&scene, RONDO_ANY_SOURCE, tag, LONGEST);
        if (!result)
            result = rondo_transfer_wait(scene.transfers[scene.count - 1], -1, &envelope);
        if (!result)
            result = check(&scene, scene.count - 1, &envelope);
        tags += envelope.tag;
    }
    if (!result && scene.rank == 0 && tags != all * (all - 1) / 2)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the sum of tags is %d", tags);
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

/* The n-th receive gets the n-th message, though a long one comes later than what follows it. */
rondo_result p2p_keep_order(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    for (int i = 0; i < FEW && !result; i++)
        result = scene.rank ? send(&scene, 0, i, lengths[i % 2 ? 2 : 5]) : RONDO_OK;
    for (int peer = 1; peer < scene.size && !scene.rank; peer++)
        for (int i = 0; i < FEW && !result; i++) {
            result = receive(&scene, peer, RONDO_ANY_TAG, LONGEST);
            if (!result && (i + peer) % 3)
                result = finish(&scene, scene.count - 1, peer, i);
        }
    for (int i = 0; i < scene.count && !scene.rank && !result; i++)
        result = finish(&scene, i, 1 + i / FEW, i % FEW);
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

rondo_result p2p_probe_first(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    rondo_envelope envelope = {0};
    int next, before;

    (void)argument;
    next = (scene.rank + 1) % scene.size;
    before = (scene.rank + scene.size - 1) % scene.size;
    if (!result &&
        rondo_p2p_probe(scene.p2p, RONDO_ANY_SOURCE, 9, 0.01, &envelope) != RONDO_IN_PROGRESS)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "a message that nobody sent");
    for (int i = 2; i < LENGTHS && !result; i += 3) {
        result = send(&scene, next, i, lengths[i]);
        while (!result && (result = rondo_p2p_probe(scene.p2p, RONDO_ANY_SOURCE, i, 0,
                                                    &envelope)) == RONDO_IN_PROGRESS)
            result = RONDO_OK; /* without waiting it comes, too */
        for (int again = 0; again < 2 && !result; again++)
            result = rondo_p2p_probe(scene.p2p, RONDO_ANY_SOURCE, i, -1, &envelope);
        if (!result && (envelope.source != before || envelope.bytes != lengths[i]))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "%zu bytes from %d", envelope.bytes,
                               envelope.source);
        if (!result)
            result = receive(&scene, envelope.source, envelope.tag, envelope.bytes);
        if (!result)
            result = finish(&scene, scene.count - 1, before, i);
    }
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

rondo_result p2p_beside_collectives(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    bool sends;

    (void)argument;
    sends = scene.rank == 0;
    for (int peer = 1; peer < scene.size && sends && !result; peer++)
        result = send(&scene, peer, 3, LONGEST);
    if (!sends && !result)
        result = receive(&scene, 0, 3, LONGEST);
    if (!sends && !result) /* the sender is in the collective by now, or will be */
        result = finish(&scene, 0, 0, 3);
    for (int i = 0; i < 5 && !result; i++)
        result = bodies_all_reduce(comm, 1000, sentence);
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

/* Rank 0 sends more than slots hold while the others, in a collective, wait for no message. */
rondo_result p2p_send_to_busy(rondo_comm *comm, void *argument, char *sentence)
{
    enum { MESSAGES = 100, BYTES = 1024 };
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result)
        result = rondo_p2p_set_timeout(scene.p2p, world_patience(5));
    for (int i = 0; i < MESSAGES && !result && !scene.rank; i++)
        result = send(&scene, 1 + i % (scene.size - 1), i, BYTES);
    if (!result)
        result = finish_all(&scene);
    if (!result)
        result = rondo_barrier(comm, NULL);
    for (int i = scene.rank - 1; i < MESSAGES && !result && scene.rank; i += scene.size - 1) {
        result = receive(&scene, 0, i, BYTES);
        if (!result)
            result = finish(&scene, scene.count - 1, 0, i);
    }
    return scene_close(&scene, result);
}

/* Too long for a receive that waits, for one that comes later, and with an offer. */
rondo_result p2p_refuse_long_ones(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence), wanted = RONDO_ERROR_MISMATCH;
    int next, before;

    (void)argument;
    next = (scene.rank + 1) % scene.size;
    before = (scene.rank + scene.size - 1) % scene.size;
    if (!result)
        result = receive(&scene, before, 2, lengths[2] - 1);
    for (int i = 2; i < LENGTHS && !result; i++)
        result = send(&scene, next, i, lengths[i]);
    for (int i = 3; i < LENGTHS && !result; i++)
        result = receive(&scene, before, i, lengths[i] - 1);
    for (int i = 0; i < LENGTHS - 2 && !result; i++) {
        rondo_transfer *transfer = scene.transfers[i ? i + LENGTHS - 2 : 0];

        if (rondo_transfer_wait(transfer, -1, NULL) != wanted ||
            !strstr(rondo_last_error(NULL), "has room for"))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "message %d was not refused: %s", i,
                               rondo_last_error(NULL));
    }
    if (!result)
        result = send(&scene, next, 1, 1);
    if (!result)
        result = receive(&scene, before, 1, 1);
    if (!result)
        result = finish(&scene, scene.count - 1, before, 1);
    return scene_close(&scene, result);
}

rondo_result p2p_close_early(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result)
        result = receive(&scene, RONDO_ANY_SOURCE, 5, 1);
    for (int i = 0; i < 20 && !result && scene.rank; i++)
        result = send(&scene, 0, i + 100, 50000);
    for (int i = 0; i < 20 * (scene.size - 1) && !result && !scene.rank; i++) {
        result = receive(&scene, RONDO_ANY_SOURCE, RONDO_ANY_TAG, 50000);
        if (!result)
            result = finish(&scene, scene.count - 1, -1, -1);
    }
    if (!result && scene.rank == 1)
        scene.transfers[0] = (rondo_transfer_close(scene.transfers[0]), NULL);
    rondo_p2p_close(scene.p2p);
    scene.p2p = NULL;
    for (int wait = 0; wait >= -1 && !result && scene.rank != 1; wait--) {
        rondo_result given_up = rondo_transfer_wait(scene.transfers[0], wait, NULL);

        /* The last rank may have seen before that nobody is left. */
        if (given_up != RONDO_ERROR_ABORTED && given_up != RONDO_ERROR_PEER)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "the receive was not given up: %s",
                               rondo_result_string(given_up));
    }
    return scene_close(&scene, result);
}

rondo_result p2p_refuse_arguments(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    char byte = 0;
    rondo_transfer *transfer = NULL;
    rondo_p2p *p2p = scene.p2p;

    (void)argument;
    if (!result &&
        (rondo_p2p_send(p2p, &byte, 1, scene.size, 0, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_send(p2p, &byte, 1, -1, 0, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_send(p2p, &byte, 1, 0, -1, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_send(p2p, NULL, 1, 0, 0, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_send(p2p, &byte, 1, 0, 0, NULL) != RONDO_ERROR_INVALID ||
         rondo_p2p_send(NULL, &byte, 1, 0, 0, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_recv(p2p, &byte, 1, -2, 0, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_recv(p2p, NULL, 1, 0, 0, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_recv(p2p, &byte, 1, 0, -2, &transfer) != RONDO_ERROR_INVALID ||
         rondo_p2p_probe(p2p, scene.size, 0, 0, NULL) != RONDO_ERROR_INVALID ||
         rondo_transfer_wait(NULL, 0, NULL) != RONDO_ERROR_INVALID ||
         rondo_p2p_abort(NULL) != RONDO_ERROR_INVALID ||
         rondo_p2p_set_timeout(NULL, 1) != RONDO_ERROR_INVALID ||
         rondo_p2p_open(NULL, &p2p) != RONDO_ERROR_INVALID))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "not refused; the last error is: %s",
                           rondo_last_error(NULL));
    rondo_transfer_close(NULL);
    rondo_p2p_close(NULL);
    return scene_close(&scene, result);
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

static rondo_result await_in_vain(struct scene *scene, const struct p2p_wait *wait)
{
    int seconds = wait->by == P2P_PROBE ? -1 : 0;
    rondo_result result;

    if (wait->by == P2P_RECEIVE) {
        result = receive(scene, wait->source, 7, 1);
        return result ? result : finish_all(scene);
    }
    do
        result = rondo_p2p_probe(scene->p2p, wait->source, 7, seconds, NULL);
    while (result == RONDO_IN_PROGRESS && !sched_yield());
    return result;
}

rondo_result p2p_lose_a_rank(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    world_will_wait(scene.rank);
    if (!result && scene.rank == 1) {
        world_await_rank(0);
        world_await_rank(2);
        kill(getpid(), SIGKILL);
    }
    if (!result)
        result = await_in_vain(&scene, argument);
    return scene_close(&scene, result);
}

rondo_result p2p_wait_for_closed(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    if (!result && !scene.rank)
        result = await_in_vain(&scene, argument);
    result = scene_close(&scene, result);
    rondo_barrier(comm, NULL); /* it is the end alone that has closed */
    return result;
}

rondo_result p2p_wait_in_vain(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    if (!result)
        result = rondo_p2p_set_timeout(scene.p2p, world_patience(0.5));
    if (!result && !scene.rank)
        result = await_in_vain(&scene, argument);
    if (!result && scene.rank)
        result = rondo_barrier(comm, NULL); /* it stays until rank 0 has given up */
    result = scene_close(&scene, result);
    if (!scene.rank)
        rondo_barrier(comm, NULL);
    return result;
}

rondo_result p2p_wait_told(rondo_comm *comm, void *argument, char *sentence)
{
    const struct p2p_wait_told *wait = argument;
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    if (!result && scene.rank && !log_copy_awaits(wait->log, wait->line))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the log has no \"%s\"", wait->line);
    if (!result && wait->sends == !scene.rank)
        result = send(&scene, !scene.rank, 7, LONG);
    else if (!result)
        result = receive(&scene, wait->source, 7, LONG);
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}

rondo_result p2p_abort(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result)
        result = receive(&scene, (scene.rank + 1) % scene.size, 7, 1);
    if (!result && scene.rank == 1)
        result = rondo_p2p_abort(scene.p2p);
    if (!result)
        result = finish_all(&scene);
    return scene_close(&scene, result);
}
