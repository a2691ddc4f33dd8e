/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.c - see p2p.h: messages that come. */
#include "tests/api/bodies.h"
#include "tests/api/p2p/scene.h"

enum { FEW = 8 };

rondo_result p2p_take_in_any_order(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);
    int next, before, first;

    (void)argument;
    next = (scene.rank + 1) % scene.size;
    before = (scene.rank + scene.size - 1) % scene.size;
    for (int tag = 0; tag < LENGTHS && !result; tag++)
        result = scene_send(&scene, next, tag, scene_lengths[tag]);
    first = scene.count;
    for (int tag = LENGTHS - 1; tag >= 0 && !result; tag--)
        result = scene_receive(&scene, before, tag, LONGEST);
    for (int tag = 0; tag < LENGTHS && !result; tag++)
        result = scene_finish(&scene, first + LENGTHS - 1 - tag, before, tag);
    if (!result)
        result = scene_finish_all(&scene);
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
            result = scene_send(&scene, peer, length, scene_lengths[2 + 3 * length]);
    for (int length = 1; length >= 0; length--)
        for (int peer = 0; peer < scene.size && !result; peer++) {
            result = scene_receive(&scene, peer, length, LONGEST);
            if (!result)
                result = scene_finish(&scene, scene.count - 1, peer, length);
        }
    if (!result)
        result = scene_finish_all(&scene);
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
        result = scene_send(&scene, 0, 2 * scene.rank + i, scene_lengths[i ? 5 : 2]);
    for (int i = 0; i < all && !result && scene.rank == 0; i++) {
        int tag = i < scene.size ? all - 2 - 2 * i : RONDO_ANY_TAG;
        rondo_envelope envelope = {0};

        result = scene_receive(&scene, RONDO_ANY_SOURCE, tag, LONGEST);
        if (!result)
            result = rondo_transfer_wait(scene.transfers[scene.count - 1], -1, &envelope);
        if (!result)
            result = scene_check(&scene, scene.count - 1, &envelope);
        tags += envelope.tag;
    }
    if (!result && scene.rank == 0 && tags != all * (all - 1) / 2)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the sum of tags is %d", tags);
    if (!result)
        result = scene_finish_all(&scene);
    return scene_close(&scene, result);
}

/* The n-th receive gets the n-th message, though a long one comes later than what follows it. */
rondo_result p2p_keep_order(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, sentence);

    (void)argument;
    for (int i = 0; i < FEW && !result; i++)
        result = scene.rank ? scene_send(&scene, 0, i, scene_lengths[i % 2 ? 2 : 5]) : RONDO_OK;
    for (int peer = 1; peer < scene.size && !scene.rank; peer++)
        for (int i = 0; i < FEW && !result; i++) {
            result = scene_receive(&scene, peer, RONDO_ANY_TAG, LONGEST);
            if (!result && (i + peer) % 3)
                result = scene_finish(&scene, scene.count - 1, peer, i);
        }
    for (int i = 0; i < scene.count && !scene.rank && !result; i++)
        result = scene_finish(&scene, i, 1 + i / FEW, i % FEW);
    if (!result)
        result = scene_finish_all(&scene);
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
        result = scene_send(&scene, next, i, scene_lengths[i]);
        while (!result && (result = rondo_p2p_probe(scene.p2p, RONDO_ANY_SOURCE, i, 0,
                                                    &envelope)) == RONDO_IN_PROGRESS)
            result = RONDO_OK; /* without waiting it comes, too */
        for (int again = 0; again < 2 && !result; again++)
            result = rondo_p2p_probe(scene.p2p, RONDO_ANY_SOURCE, i, -1, &envelope);
        if (!result && (envelope.source != before || envelope.bytes != scene_lengths[i]))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "%zu bytes from %d", envelope.bytes,
                               envelope.source);
        if (!result)
            result = scene_receive(&scene, envelope.source, envelope.tag, envelope.bytes);
        if (!result)
            result = scene_finish(&scene, scene.count - 1, before, i);
    }
    if (!result)
        result = scene_finish_all(&scene);
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
        result = scene_send(&scene, peer, 3, LONGEST);
    if (!sends && !result)
        result = scene_receive(&scene, 0, 3, LONGEST);
    if (!sends && !result) /* the sender is in the collective by now, or will be */
        result = scene_finish(&scene, 0, 0, 3);
    for (int i = 0; i < 5 && !result; i++)
        result = bodies_all_reduce(comm, 1000, sentence);
    if (!result)
        result = scene_finish_all(&scene);
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
        result = scene_send(&scene, 1 + i % (scene.size - 1), i, BYTES);
    if (!result)
        result = scene_finish_all(&scene);
    if (!result)
        result = rondo_barrier(comm, NULL);
    for (int i = scene.rank - 1; i < MESSAGES && !result && scene.rank; i += scene.size - 1) {
        result = scene_receive(&scene, 0, i, BYTES);
        if (!result)
            result = scene_finish(&scene, scene.count - 1, 0, i);
    }
    return scene_close(&scene, result);
}
