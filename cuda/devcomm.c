/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devcomm.c - a rank's links on the device.
 *
 * The inbox is all that peers touch. For every channel and peer it has the ring of messages from
 * that peer, and the credit for those to it: who waits, for a message or for a slot, looks into
 * memory of its own device.
 *
 *     inbox  | credits [channel][to] | LL lines [channel][from] | slots [channel][from] |
 */
#include "cuda/devcomm.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

static size_t links_of(const struct cuda_devcomm *devcomm)
{
    return (size_t)devcomm->shape.size * PLAN_CHANNELS;
}

static size_t slots_bytes(const struct cuda_devcomm *devcomm)
{
    return (size_t)devcomm->shape.slots * link_stride(devcomm->shape.slot_bytes);
}

static size_t inbox_bytes(const struct cuda_devcomm *devcomm)
{
    return links_of(devcomm) *
           (sizeof(struct link_credit) + sizeof(struct cuda_ll) + slots_bytes(devcomm));
}

rondo_result devcomm_alloc(const struct cuda_devcomm *devcomm, size_t bytes,
                           CUdeviceptr *ret_memory)
{
    *ret_memory = 0;
    if (!bytes)
        return RONDO_OK;
    return cuda_stock_take(&devcomm->launcher->stock, &devcomm->launcher->device,
                           CUDA_HOLDING_DEVICE, bytes, ret_memory);
}

void devcomm_free(const struct cuda_devcomm *devcomm, CUdeviceptr memory)
{
    cuda_stock_return(&devcomm->launcher->stock, &devcomm->launcher->device, memory);
}

static void *at(CUdeviceptr memory)
{
    return (void *)(uintptr_t)memory;
}

rondo_result devcomm_upload(const struct cuda_devcomm *devcomm, CUdeviceptr to, const void *from,
                            size_t bytes)
{
    const struct cuda_driver *driver = devcomm->launcher->device.driver;
    CUstream stream = NULL;
    rondo_result result =
        cuda_result(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

    if (result)
        return result;
    result = cuda_result(driver->cuMemcpyHtoDAsync(to, from, bytes, stream), "cuMemcpyHtoDAsync");
    if (!result)
        result = cuda_result(driver->cuStreamSynchronize(stream), "cuStreamSynchronize");
    driver->cuStreamDestroy(stream);
    return result;
}

/* A word is there when it has its message's number: those of an inbox in which nothing has come yet
 * have the number of the message before the first, not 0, which is a number like others. */
static void number_words(struct cuda_ll *ll, uint32_t before)
{
    for (int i = 0; i < CUDA_PACKED_ROOM; i++)
        for (int k = 0; k < CUDA_PACKED_WORDS; k++)
            ll->entries[i].words[k].halves[0] = ll->entries[i].words[k].halves[1] = before;
}

/* Inboxes begin empty, with credits for what came before. */
static rondo_result clear_inbox(const struct cuda_devcomm *devcomm)
{
    size_t bytes = inbox_bytes(devcomm);
    struct link_credit *credits = calloc(1, bytes);
    struct cuda_ll *ll = (struct cuda_ll *)(void *)(credits + links_of(devcomm));
    rondo_result result;

    if (!credits)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for %zu bytes of links.", bytes);
    for (size_t i = 0; i < links_of(devcomm); i++) {
        atomic_init(&credits[i].consumed, devcomm->shape.start);
        if (devcomm->shape.start)
            number_words(&ll[i], devcomm->shape.start);
    }
    result = devcomm_upload(devcomm, devcomm->inbox, credits, bytes);
    free(credits);
    return result;
}

static rondo_result alloc_host(struct cuda_devcomm *devcomm)
{
    CUdeviceptr host;
    rondo_result result = cuda_stock_take(&devcomm->launcher->stock, &devcomm->launcher->device,
                                          CUDA_HOLDING_PINNED, sizeof(*devcomm->host), &host);

    if (result)
        return result;
    devcomm->host = at(host);
    memset(devcomm->host, 0, sizeof(*devcomm->host));
    return RONDO_OK;
}

/* Memory of the device that is all zeros: memory of the stock has what others left there. */
static rondo_result alloc_cleared(const struct cuda_devcomm *devcomm, size_t bytes,
                                  CUdeviceptr *ret_memory)
{
    void *zeros = calloc(1, bytes ? bytes : 1);
    rondo_result result = devcomm_alloc(devcomm, bytes, ret_memory);

    if (!zeros)
        result =
            rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for %zu bytes of links.", bytes);
    if (!result && bytes)
        result = devcomm_upload(devcomm, *ret_memory, zeros, bytes);
    free(zeros);
    return result;
}

static rondo_result check_shape(const struct cuda_devcomm_shape *shape)
{
    if (shape->slots < 2 || shape->slots > CUDA_PACKED_ROOM)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "Links on a GPU have 2 to %d slots, not %d: set RONDO_SLOTS.",
                          CUDA_PACKED_ROOM, shape->slots);
    return RONDO_OK;
}

rondo_result cuda_devcomm_open(struct cuda_launcher *launcher,
                               const struct cuda_devcomm_shape *shape,
                               struct cuda_devcomm **ret_devcomm)
{
    struct cuda_devcomm *devcomm;
    size_t size = (size_t)shape->size, each = shape->regions_each * sizeof(struct cuda_region);
    size_t known = shape->regions_known * sizeof(struct cuda_known_region);
    rondo_result result = check_shape(shape);

    if (result)
        return result;
    devcomm = calloc(1, sizeof(*devcomm));
    if (!devcomm)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for links on a GPU.");
    devcomm->launcher = launcher;
    devcomm->shape = *shape;
    result = devcomm_alloc(devcomm, inbox_bytes(devcomm), &devcomm->inbox);
    if (!result)
        result = clear_inbox(devcomm);
    if (!result)
        result =
            devcomm_alloc(devcomm, 2 * links_of(devcomm) * CUDA_PACKED_BYTES, &devcomm->packed);
    if (!result)
        result =
            alloc_cleared(devcomm, PLAN_PROGRAMS_MAX * sizeof(struct cuda_team), &devcomm->teams);
    if (!result)
        result = alloc_cleared(devcomm, size * each, &devcomm->regions);
    if (!result)
        result = alloc_cleared(devcomm, size * known, &devcomm->known);
    if (!result)
        result = alloc_host(devcomm);
    if (result)
        cuda_devcomm_close(devcomm, false);
    else
        *ret_devcomm = devcomm;
    return result;
}

void cuda_devcomm_close(struct cuda_devcomm *devcomm, bool keep_inbox)
{
    if (!devcomm)
        return;
    if (!keep_inbox)
        devcomm_free(devcomm, devcomm->inbox);
    devcomm_free(devcomm, devcomm->packed);
    devcomm_free(devcomm, devcomm->world);
    devcomm_free(devcomm, devcomm->teams);
    devcomm_free(devcomm, devcomm->regions);
    devcomm_free(devcomm, devcomm->known);
    devcomm_free(devcomm, cuda_address(devcomm->host));
    free(devcomm);
}

CUdeviceptr cuda_devcomm_inbox(const struct cuda_devcomm *devcomm, size_t *ret_bytes)
{
    *ret_bytes = inbox_bytes(devcomm);
    return devcomm->inbox;
}

static CUdeviceptr credit_at(const struct cuda_devcomm *devcomm, CUdeviceptr inbox, size_t link)
{
    (void)devcomm;
    return inbox + link * sizeof(struct link_credit);
}

static CUdeviceptr ll_at(const struct cuda_devcomm *devcomm, CUdeviceptr inbox, size_t link)
{
    return credit_at(devcomm, inbox, links_of(devcomm)) + link * sizeof(struct cuda_ll);
}

static CUdeviceptr slots_at(const struct cuda_devcomm *devcomm, CUdeviceptr inbox, size_t link)
{
    return ll_at(devcomm, inbox, links_of(devcomm)) + link * slots_bytes(devcomm);
}

/* Both ends that this rank has of channel `channel` with `peer`. */
static void make_links(const struct cuda_devcomm *devcomm, int channel, int peer,
                       CUdeviceptr theirs, struct link_out *out, struct link_in *in)
{
    size_t mine = (size_t)channel * (size_t)devcomm->shape.size + (size_t)peer;
    size_t my = (size_t)channel * (size_t)devcomm->shape.size + (size_t)devcomm->shape.rank;
    uint32_t slots = (uint32_t)devcomm->shape.slots;

    *out = (struct link_out){.slots = at(slots_at(devcomm, theirs, my)),
                             .credit = at(credit_at(devcomm, devcomm->inbox, mine)),
                             .stride = link_stride(devcomm->shape.slot_bytes),
                             .ll = at(ll_at(devcomm, theirs, my)),
                             .packed = at(devcomm->packed + 2 * mine * CUDA_PACKED_BYTES),
                             .slot_count = slots,
                             .sent = devcomm->shape.start,
                             .consumed = devcomm->shape.start,
                             .index = devcomm->shape.start % slots};
    *in = (struct link_in){.slots = at(slots_at(devcomm, devcomm->inbox, mine)),
                           .credit = at(credit_at(devcomm, theirs, my)),
                           .stride = link_stride(devcomm->shape.slot_bytes),
                           .ll = at(ll_at(devcomm, devcomm->inbox, mine)),
                           .packed = at(devcomm->packed + (2 * mine + 1) * CUDA_PACKED_BYTES),
                           .slot_count = slots,
                           .received = devcomm->shape.start,
                           .index = devcomm->shape.start % slots};
}

rondo_result cuda_devcomm_connect(struct cuda_devcomm *devcomm, const CUdeviceptr *inboxes)
{
    size_t links = links_of(devcomm), size = (size_t)devcomm->shape.size;
    size_t bytes = sizeof(struct exec_world) + size * sizeof(struct exec_peer) +
                   links * (sizeof(struct link_out) + sizeof(struct link_in));
    struct exec_world *world = calloc(1, bytes);
    struct link_out *out;
    struct link_in *in;
    rondo_result result = devcomm_alloc(devcomm, bytes, &devcomm->world);

    if (!world)
        result =
            rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for %zu bytes of links.", bytes);
    if (!result) {
        out = (struct link_out *)(void *)(world + 1);
        in = (struct link_in *)(void *)(out + links);
        for (int channel = 0; channel < PLAN_CHANNELS; channel++)
            for (int peer = 0; peer < devcomm->shape.size; peer++) {
                size_t link = (size_t)channel * size + (size_t)peer;

                make_links(devcomm, channel, peer, inboxes[peer], &out[link], &in[link]);
            }
        world->rank = devcomm->shape.rank;
        world->size = devcomm->shape.size;
        world->slot_bytes = devcomm->shape.slot_bytes;
        world->out = at(devcomm->world + sizeof(*world));
        world->in = at(devcomm->world + sizeof(*world) + links * sizeof(*out));
        world->peers = at(devcomm->world + sizeof(*world) + links * (sizeof(*out) + sizeof(*in)));
        result = devcomm_upload(devcomm, devcomm->world, world, bytes);
    }
    free(world);
    return result;
}

rondo_result cuda_devcomm_regions(struct cuda_devcomm *devcomm, int peer,
                                  const struct cuda_region *regions, unsigned count)
{
    unsigned most = devcomm->shape.regions_each;

    if (count > most)
        return rondo_fail(RONDO_ERROR_INTERNAL, "%u segments of rank %d are more than %u.", count,
                          peer, most);
    return devcomm_upload(devcomm,
                          devcomm->regions + (size_t)peer * most * sizeof(struct cuda_region),
                          regions, count * sizeof(struct cuda_region));
}

/* ---- How it goes ----------------------------------------------------------------------------- */

void cuda_devcomm_look(const struct cuda_devcomm *devcomm, struct cuda_look *ret_look)
{
    struct cuda_look look = {.state = EXEC_DONE};
    const struct cuda_halt *halt = &devcomm->host->halt;

    /* Acquire, pairs with the release in halt() on the device. */
    if (__atomic_load_n(&halt->failed.state, __ATOMIC_ACQUIRE) != EXEC_DONE) {
        *ret_look = (struct cuda_look){.state = EXEC_MISMATCH,
                                       .program = (int)halt->program,
                                       .step = halt->failed.step,
                                       .blamed = (int)halt->failed.blamed,
                                       .foreign = halt->failed.foreign};
        return;
    }
    /* All of them: the kernel that runs may be of a call with more programs than the last one. */
    for (int p = 0; p < PLAN_PROGRAMS_MAX; p++) {
        const struct cuda_status *status = &devcomm->host->status[p];
        /* Acquire, pairs with the release in lead() on the device. */
        uint32_t state = __atomic_load_n(&status->state, __ATOMIC_ACQUIRE);

        if (state == EXEC_DONE || (look.state != EXEC_DONE && state == EXEC_BLOCKED))
            continue;
        look = (struct cuda_look){.state = (enum exec_state)state,
                                  .program = p,
                                  .step = __atomic_load_n(&status->step, __ATOMIC_ACQUIRE),
                                  .segment = __atomic_load_n(&status->segment, __ATOMIC_RELAXED),
                                  .blamed = (int)__atomic_load_n(&status->blamed, __ATOMIC_ACQUIRE),
                                  .foreign = __atomic_load_n(&status->foreign, __ATOMIC_ACQUIRE)};
        if (state != EXEC_BLOCKED)
            break;
    }
    *ret_look = look;
}

void cuda_devcomm_hold(struct cuda_devcomm *devcomm)
{
    __atomic_store_n(&devcomm->host->halt.hold, 1, __ATOMIC_RELAXED);
    /* Pairs with the fence in step_enter() on the device. */
    atomic_thread_fence(memory_order_seq_cst);
}

bool cuda_devcomm_is_inside(const struct cuda_devcomm *devcomm)
{
    bool inside = false;

    /* Acquire, pairs with the release on the device: the touching came before. */
    for (int p = 0; p < PLAN_PROGRAMS_MAX; p++)
        inside |= __atomic_load_n(&devcomm->host->status[p].inside, __ATOMIC_ACQUIRE) != 0;
    return inside;
}

void cuda_devcomm_stop(struct cuda_devcomm *devcomm)
{
    /* Release, pairs with the acquire in look_up() on the device. */
    __atomic_store_n(&devcomm->host->halt.stop, 1, __ATOMIC_RELEASE);
}
