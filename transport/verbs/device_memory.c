/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_memory.c - memory of a GPU that adapters read and write (GPUDirect): its
 * registration, and what a peer gets of it.
 *
 * That a small piece could be registered and tried (verbs/try.c) does not say that there is room
 * for another: adapters reach device memory through a window (BAR1) that may be small. So each pair
 * of ranks finds out for itself, when it is connected, and is content with the host's slots.
 */
#include "transport/verbs/try.h"

#include "transport/verbs/inside.h"

#include "base/fail.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

static struct ibv_mr *register_as(const struct verbs_device *device, enum device_way way,
                                  const struct device_memory *memory, const struct verbs_part *part,
                                  int access)
{
    const struct verbs_calls *calls = device->calls;
    uint64_t address = memory->address + part->at;
    void *at = (void *)(uintptr_t)address;

    if (way == DEVICE_DMABUF)
        return calls->reg_dmabuf_mr(device->pd, memory->offset + part->at, part->bytes, address,
                                    memory->file, access);
    if (access & IBV_ACCESS_OPTIONAL_RANGE && calls->reg_mr_iova2)
        return calls->reg_mr_iova2(device->pd, at, part->bytes, address, (unsigned)access);
    return calls->reg_mr(device->pd, at, part->bytes, access & ~(int)IBV_ACCESS_OPTIONAL_RANGE);
}

rondo_result verbs_register_device(const struct verbs_device *device, enum device_way way,
                                   const struct device_memory *memory,
                                   const struct verbs_part *part, struct ibv_mr **ret_mr)
{
    struct ibv_mr *mr;

    errno = ENOMEM;
    mr = register_as(device, way, memory, part, part->access | IBV_ACCESS_RELAXED_ORDERING);
    if (!mr) /* perhaps it does not know of relaxed ordering there */
        mr = register_as(device, way, memory, part, part->access);
    if (!mr)
        return rondo_fail(RONDO_ERROR_MEMORY, "%s refused %zu bytes of it by %s: %s", device->name,
                          part->bytes, verbs_way_name(way), strerror(errno));
    *ret_mr = mr;
    return RONDO_OK;
}

const char *verbs_way_name(enum device_way way)
{
    static const char *const names[DEVICE_WAYS] = {"a copy", "slots of the host", "dmabuf",
                                                   "peer memory"};
    return names[way];
}

static rondo_result register_boxes(struct verbs_peer *peer, int index)
{
    const struct verbs_network *network = peer->network;
    const struct verbs_device *device = network->rails.device[index];
    struct verbs_rail *rail = &peer->rail[index];
    size_t box = verbs_box_bytes(network);
    const struct verbs_part inbox = {0, box, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    const struct verbs_part outbox = {box, box, 0};
    rondo_result result;

    result =
        verbs_register_device(device, network->job.way, &peer->device, &inbox, &rail->device_inbox);
    return result ? result
                  : verbs_register_device(device, network->job.way, &peer->device, &outbox,
                                          &rail->device_outbox);
}

static void forget_boxes(struct verbs_peer *peer)
{
    const struct verbs_calls *calls = peer->network->rails.device[0]->calls;

    for (int i = 0; i < peer->rails; i++) {
        struct verbs_rail *rail = &peer->rail[i];

        if (rail->device_inbox)
            calls->dereg_mr(rail->device_inbox);
        if (rail->device_outbox)
            calls->dereg_mr(rail->device_outbox);
        rail->device_inbox = rail->device_outbox = NULL;
    }
}

void verbs_take_device(struct verbs_peer *peer)
{
    const struct verbs_network *network = peer->network;
    const struct device_source *source = network->job.device;
    rondo_result result;

    if (!source)
        return;
    result = source->take(source->context, 2 * verbs_box_bytes(network),
                          network->job.way == DEVICE_DMABUF, &peer->device);
    for (int i = 0; i < peer->rails && !result; i++)
        result = register_boxes(peer, i);
    if (!result) {
        log_debug("rank %d and rank %d: %zu bytes of %s by %s", network->job.rank, peer->rank,
                  2 * verbs_box_bytes(network), source->name, verbs_way_name(network->job.way));
        return;
    }
    log_info("GPU buffers between rank %d and rank %d go through slots of the host: memory of %s: "
             "%s",
             network->job.rank, peer->rank, source->name, fail_sentence());
    verbs_give_device(peer);
}

void verbs_give_device(struct verbs_peer *peer)
{
    const struct device_source *source = peer->network->job.device;

    forget_boxes(peer);
    if (source)
        source->give(source->context, &peer->device);
    peer->device = (struct device_memory){0};
}
