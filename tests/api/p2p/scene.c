/* SPDX-License-Identifier: BSD-3-Clause */
/* scene.c - see scene.h. */
#include "tests/api/p2p/scene.h"

#include <stdlib.h>

const size_t scene_lengths[LENGTHS] = {0, 1, 4099, LONG - 1, LONG, LONGEST};

static struct world_data data_of(const struct scene *scene, int tag)
{
    return (struct world_data){RONDO_UINT8, WORLD_MOVED, scene->size, (uint64_t)tag};
}

rondo_result scene_open(struct scene *scene, rondo_comm *comm, char *sentence)
{
    *scene = (struct scene){.comm = comm,
                            .rank = rondo_comm_rank(comm),
                            .size = rondo_comm_size(comm),
                            .sentence = sentence};
    return rondo_p2p_open(comm, &scene->p2p);
}

rondo_result scene_close(struct scene *scene, rondo_result result)
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

rondo_result scene_send(struct scene *scene, int peer, int tag, size_t bytes)
{
    struct world_data data = data_of(scene, tag);
    char *memory = malloc(bytes + 1);

    world_fill(&data, scene->rank, bytes, memory);
    scene->memory[scene->count] = memory;
    return rondo_p2p_send(scene->p2p, memory, bytes, peer, tag, &scene->transfers[scene->count++]);
}

rondo_result scene_receive(struct scene *scene, int source, int tag, size_t bytes)
{
    int i = scene->count++;

    scene->memory[i] = calloc(1, bytes + 1);
    return rondo_p2p_recv(scene->p2p, scene->memory[i], bytes, source, tag, &scene->transfers[i]);
}

rondo_result scene_check(const struct scene *scene, int transfer, const rondo_envelope *envelope)
{
    struct world_data data = data_of(scene, envelope->tag);

    return world_check_moved(&data, envelope->source, 0, envelope->bytes, scene->memory[transfer],
                             scene->sentence)
               ? RONDO_OK
               : RONDO_ERROR_INTERNAL;
}

rondo_result scene_finish(const struct scene *scene, int transfer, int source, int tag)
{
    rondo_envelope envelope = {-2, -2, 0};
    rondo_result result = rondo_transfer_wait(scene->transfers[transfer], -1, &envelope);

    if (result)
        return result;
    if ((source >= 0 && envelope.source != source) || (tag >= 0 && envelope.tag != tag))
        return world_say(scene->sentence, RONDO_ERROR_INTERNAL, "from %d with tag %d, not %d, %d",
                         envelope.source, envelope.tag, source, tag);
    return scene_check(scene, transfer, &envelope);
}

rondo_result scene_finish_all(const struct scene *scene)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < scene->count && !result; i++)
        result = rondo_transfer_wait(scene->transfers[i], -1, NULL);
    return result;
}
