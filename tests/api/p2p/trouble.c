/* SPDX-License-Identifier: BSD-3-Clause */
/* trouble.c - see p2p.h: messages that do not come, or are not taken. */
#include "tests/api/p2p/scene.h"
#include "tests/log_copy.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
        result = scene_receive(&scene, before, 2, scene_lengths[2] - 1);
    for (int i = 2; i < LENGTHS && !result; i++)
        result = scene_send(&scene, next, i, scene_lengths[i]);
    for (int i = 3; i < LENGTHS && !result; i++)
        result = scene_receive(&scene, before, i, scene_lengths[i] - 1);
    for (int i = 0; i < LENGTHS - 2 && !result; i++) {
        rondo_transfer *transfer = scene.transfers[i ? i + LENGTHS - 2 : 0];

        if (rondo_transfer_wait(transfer, -1, NULL) != wanted ||
            !strstr(rondo_last_error(NULL), "has room for"))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "message %d was not refused: %s", i,
                               rondo_last_error(NULL));
    }
    if (!result)
        result = scene_send(&scene, next, 1, 1);
    if (!result)
        result = scene_receive(&scene, before, 1, 1);
    if (!result)
        result = scene_finish(&scene, scene.count - 1, before, 1);
    return scene_close(&scene, result);
}

/* Nobody may read what is sent here, and need not, as it is too long for its receives: of one that
 * waits, and of one that comes later. */
rondo_result p2p_refuse_unread(rondo_comm *comm, void *argument, char *sentence)
{
    enum { HUGE_BYTES = 1 << 30 };
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    void *hidden = mmap(NULL, HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)argument;
    for (int tag = 1; tag <= 2 && !result; tag++) {
        if (scene.rank == 0)
            result = rondo_p2p_send(scene.p2p, hidden, HUGE_BYTES, 1, tag,
                                    &scene.transfers[scene.count++]);
        if (scene.rank == 1 && tag == 2)
            result = rondo_p2p_probe(scene.p2p, 0, tag, -1, NULL);
        if (scene.rank == 1 && !result)
            result = scene_receive(&scene, 0, tag, 1);
    }
    for (int i = 0; i < 2 && !result && scene.rank == 1; i++)
        if (rondo_transfer_wait(scene.transfers[i], -1, NULL) != RONDO_ERROR_MISMATCH)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "message %d was not refused: %s", i,
                               rondo_last_error(NULL));
    if (!result && scene.rank == 0)
        result = scene_send(&scene, 1, 3, LONG);
    if (!result && scene.rank == 0)
        result = scene_finish_all(&scene);
    if (!result && scene.rank == 1)
        result = scene_receive(&scene, 0, 3, LONG);
    if (!result && scene.rank == 1)
        result = scene_finish(&scene, scene.count - 1, 0, 3);
    result = scene_close(&scene, result);
    munmap(hidden, HUGE_BYTES);
    return result;
}

/* Expects that just this ends with RONDO_ERROR_PEER, and that its sentence has the word. */
static rondo_result expect_peer(const struct scene *scene, rondo_result result, const char *word)
{
    if (result == RONDO_ERROR_PEER && strstr(rondo_last_error(NULL), word))
        return RONDO_OK;
    return world_say(scene->sentence, RONDO_ERROR_INTERNAL, "%s, \"%s\" and not \"%s\"",
                     rondo_result_string(result), rondo_last_error(NULL), word);
}

/* Closes the last transfer, which has ended. */
static void drop_last(struct scene *scene)
{
    int last = --scene->count;

    rondo_transfer_close(scene->transfers[last]);
    free(scene->memory[last]);
    scene->transfers[last] = NULL;
}

/* Sends to rank 1, which takes nothing: over a network this rank may learn of it only now. */
static rondo_result send_in_vain(struct scene *scene, int length)
{
    int last = scene->count;
    rondo_result result = scene_send(scene, 1, length, scene_lengths[length]);

    if (!result)
        result = rondo_transfer_wait(scene->transfers[last], -1, NULL);
    result = expect_peer(scene, result, "closed its messages");
    drop_last(scene);
    return result;
}

rondo_result p2p_send_to_closed(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result && scene.rank == 1) {
        rondo_p2p_close(scene.p2p);
        scene.p2p = NULL;
    }
    if (!result)
        result = rondo_barrier(comm, NULL);
    for (int i = 1; i < LENGTHS && !result && scene.rank != 1; i++)
        result = send_in_vain(&scene, i);
    if (!result && scene.rank != 1)
        result = scene_send(&scene, scene.rank, 1, 1);
    if (!result)
        result = scene_finish_all(&scene);
    return scene_close(&scene, result);
}

/* All send, nobody receives, and all close: each ends with its own error. */
rondo_result p2p_close_over_sends(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result)
        result = scene_send(&scene, (scene.rank + 1) % scene.size, 6, LONG);
    if (!result)
        result = rondo_barrier(comm, NULL);
    rondo_p2p_close(scene.p2p);
    scene.p2p = NULL;
    if (!result)
        result = expect_peer(&scene, rondo_transfer_wait(scene.transfers[0], -1, NULL),
                             "65537 bytes with tag 6");
    return scene_close(&scene, result);
}

rondo_result p2p_close_early(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result)
        result = scene_receive(&scene, RONDO_ANY_SOURCE, 5, 1);
    for (int i = 0; i < 20 && !result && scene.rank; i++)
        result = scene_send(&scene, 0, i + 100, 50000);
    for (int i = 0; i < 20 * (scene.size - 1) && !result && !scene.rank; i++) {
        result = scene_receive(&scene, RONDO_ANY_SOURCE, RONDO_ANY_TAG, 50000);
        if (!result)
            result = scene_finish(&scene, scene.count - 1, -1, -1);
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

static rondo_result await_in_vain(struct scene *scene, const struct p2p_wait *wait)
{
    int seconds = wait->by == P2P_PROBE ? -1 : 0;
    rondo_result result;

    if (wait->by == P2P_RECEIVE) {
        result = scene_receive(scene, wait->source, wait->tag, 1);
        return result ? result : scene_finish_all(scene);
    }
    do
        result = rondo_p2p_probe(scene->p2p, wait->source, wait->tag, seconds, NULL);
    while (result == RONDO_IN_PROGRESS && !sched_yield());
    return result;
}

/* Rank 1 sends to all others, which are connected to it then. */
static rondo_result connect_to_first(struct scene *scene)
{
    rondo_result result = RONDO_OK;

    for (int peer = 0; peer < scene->size && !result; peer++)
        if (scene->rank == 1 && peer != 1)
            result = scene_send(scene, peer, 3, 1);
    if (!result && scene->rank != 1)
        result = scene_receive(scene, 1, 3, 1);
    return result ? result : scene_finish_all(scene);
}

rondo_result p2p_lose_a_rank(rondo_comm *comm, void *argument, char *sentence)
{
    const struct p2p_wait *wait = argument;
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    if (!result)
        result = connect_to_first(&scene);
    world_will_wait(scene.rank);
    if (!result && scene.rank == 1) {
        for (int peer = 0; peer <= 2 && wait->by != P2P_PROBE_AGAIN; peer += 2)
            world_await_rank(peer);
        kill(getpid(), SIGKILL);
    }
    if (!result)
        result = await_in_vain(&scene, wait);
    return scene_close(&scene, result);
}

/* Receives from all ranks but rank 1, and sends to them. */
static rondo_result exchange_without_first(struct scene *scene)
{
    rondo_result result = RONDO_OK;

    for (int peer = 0; peer < scene->size && !result; peer++) {
        if (peer == 1 || peer == scene->rank)
            continue;
        result = scene_send(scene, peer, 3, LONG);
        if (!result)
            result = scene_receive(scene, peer, 3, LONG);
    }
    return result ? result : scene_finish_all(scene);
}

rondo_result p2p_lose_a_stranger(rondo_comm *comm, void *argument, char *sentence)
{
    static const struct p2p_wait waits[] = {
        {1, 7, P2P_PROBE}, {1, 7, P2P_PROBE_AGAIN}, {1, 7, P2P_RECEIVE}};
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    bool is_stranger = scene.rank == 1 + scene.size / 2;
    atomic_int *done = argument;

    world_will_wait(scene.rank);
    for (int peer = 0; peer < scene.size && !result && scene.rank == 1; peer++)
        if (peer != 1)
            world_await_rank(peer); /* its end is open */
    if (!result && scene.rank == 1)
        kill(getpid(), SIGKILL);
    while (!result && world_await_rank(1))
        continue;
    for (int i = 0; i < 3 && !result && is_stranger; i++)
        result = expect_peer(&scene, await_in_vain(&scene, &waits[i]), "or has ended, and sends");
    if (!result && is_stranger) {
        drop_last(&scene);
        result = send_in_vain(&scene, 2);
    }
    if (!result)
        result = exchange_without_first(&scene);
    /* What becomes of messages to a rank that closes meanwhile is not the subject here. */
    atomic_fetch_add_explicit(done, 1, memory_order_release);
    while (!result && atomic_load_explicit(done, memory_order_acquire) < scene.size - 1)
        usleep(1000);
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

/* Returns that result, which has a sentence, if no more than one wait has ended with it. */
static rondo_result expect_going_on(const struct scene *scene, rondo_result result)
{
    world_say(scene->sentence, result, "%s", rondo_last_error(NULL));
    if (rondo_p2p_probe(scene->p2p, 0, 1, 0, NULL) != RONDO_IN_PROGRESS)
        return RONDO_ERROR_INTERNAL;
    return result;
}

rondo_result p2p_wait_in_vain(rondo_comm *comm, void *argument, char *sentence)
{
    const struct p2p_wait *wait = argument;
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    if (!result)
        result = rondo_p2p_set_timeout(scene.p2p, world_patience(0.1));
    if (!result && !scene.rank)
        result = await_in_vain(&scene, argument);
    if (result == RONDO_ERROR_TIMEOUT && wait->source != 1)
        result = expect_going_on(&scene, result);
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
        result = scene_send(&scene, !scene.rank, 7, LONG);
    else if (!result)
        result = scene_receive(&scene, wait->source, 7, LONG);
    if (!result)
        result = scene_finish_all(&scene);
    return scene_close(&scene, result);
}

rondo_result p2p_abort(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    if (!result)
        result = scene_receive(&scene, (scene.rank + 1) % scene.size, 7, 1);
    if (!result && scene.rank == 1)
        result = rondo_p2p_abort(scene.p2p);
    if (!result)
        result = scene_finish_all(&scene);
    return scene_close(&scene, result);
}
