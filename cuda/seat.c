/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seat.c - a rank's links on the device.
 *
 * The inbox is all that peers touch. For every lane and peer it has the ring of messages from that
 * peer, and the credit for those to it: who waits, for a message or for a slot, looks into memory
 * of its own device.
 *
 *     inbox  | credits [lane][to] | shorts [lane][from] | slots [lane][from] |
 */
#include "cuda/seat.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

static size_t links_of(const struct cuda_seat *seat)
{
    return (size_t)seat->shape.size * PLAN_LANES;
}

static size_t slots_bytes(const struct cuda_seat *seat)
{
    return (size_t)seat->shape.slots * link_stride(seat->shape.slot_bytes);
}

static size_t inbox_bytes(const struct cuda_seat *seat)
{
    return links_of(seat) *
           (sizeof(struct link_credit) + sizeof(struct cuda_shorts) + slots_bytes(seat));
}

rondo_result seat_alloc(const struct cuda_seat *seat, size_t bytes, CUdeviceptr *ret_memory)
{
    *ret_memory = 0;
    if (!bytes)
        return RONDO_OK;
    return cuda_stock_take(&seat->launcher->stock, &seat->launcher->device, CUDA_HOLDING_DEVICE,
                           bytes, ret_memory);
}

void seat_free(const struct cuda_seat *seat, CUdeviceptr memory)
{
    cuda_stock_return(&seat->launcher->stock, &seat->launcher->device, memory);
}

static void *at(CUdeviceptr memory)
{
    return (void *)(uintptr_t)memory;
}

/* To the device from `from`, or from it to `to`: the other one is NULL. Waits for the copy only. */
static rondo_result copy(const struct cuda_seat *seat, CUdeviceptr device, const void *from,
                         void *to, size_t bytes)
{
    const struct cuda_driver *driver = seat->launcher->device.driver;
    CUstream stream = NULL;
    rondo_result result =
        cuda_result(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

    if (result)
        return result;
    result = from ? cuda_result(driver->cuMemcpyHtoDAsync(device, from, bytes, stream),
                                "cuMemcpyHtoDAsync")
                  : cuda_result(driver->cuMemcpyDtoHAsync(to, device, bytes, stream),
                                "cuMemcpyDtoHAsync");
    if (!result)
        result = cuda_result(driver->cuStreamSynchronize(stream), "cuStreamSynchronize");
    driver->cuStreamDestroy(stream);
    return result;
}

rondo_result seat_upload(const struct cuda_seat *seat, CUdeviceptr to, const void *from,
                         size_t bytes)
{
    return copy(seat, to, from, NULL, bytes);
}

/* A word is there when it has its message's number: those of an inbox in which nothing has come yet
 * have the number of the message before the first, not 0, which is a number like others. */
static void number_words(struct cuda_shorts *shorts, uint32_t before)
{
    for (int i = 0; i < CUDA_PACKED_ROOM; i++)
        for (int k = 0; k < CUDA_PACKED_WORDS; k++)
            shorts->entries[i].words[k].halves[0] = shorts->entries[i].words[k].halves[1] = before;
}

/* Inboxes begin empty, with credits for what came before. */
static rondo_result clear_inbox(const struct cuda_seat *seat)
{
    size_t bytes = inbox_bytes(seat);
    struct link_credit *credits = calloc(1, bytes);
    struct cuda_shorts *shorts = (struct cuda_shorts *)(void *)(credits + links_of(seat));
    rondo_result result;

    if (!credits)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for %zu bytes of links.", bytes);
    for (size_t i = 0; i < links_of(seat); i++) {
        atomic_init(&credits[i].consumed, seat->shape.start);
        if (seat->shape.start)
            number_words(&shorts[i], seat->shape.start);
    }
    result = seat_upload(seat, seat->inbox, credits, bytes);
    free(credits);
    return result;
}

static rondo_result alloc_board(struct cuda_seat *seat)
{
    CUdeviceptr board;
    rondo_result result = cuda_stock_take(&seat->launcher->stock, &seat->launcher->device,
                                          CUDA_HOLDING_PINNED, sizeof(*seat->board), &board);

    if (result)
        return result;
    seat->board = at(board);
    memset(seat->board, 0, sizeof(*seat->board));
    return RONDO_OK;
}

static rondo_result check_shape(const struct cuda_seat_shape *shape)
{
    if (shape->slots < 2 || shape->slots > CUDA_PACKED_ROOM)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "Links on a GPU have 2 to %d slots, not %d: set RONDO_SLOTS.",
                          CUDA_PACKED_ROOM, shape->slots);
    return RONDO_OK;
}

rondo_result cuda_seat_open(struct cuda_launcher *launcher, const struct cuda_seat_shape *shape,
                            struct cuda_seat **ret_seat)
{
    struct cuda_seat *seat;
    size_t links, each = shape->segments_each * sizeof(struct cuda_segment);
    rondo_result result = check_shape(shape);

    if (result)
        return result;
    seat = calloc(1, sizeof(*seat));
    if (!seat)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for links on a GPU.");
    seat->launcher = launcher;
    seat->shape = *shape;
    links = links_of(seat);
    result = seat_alloc(seat, inbox_bytes(seat), &seat->inbox);
    if (!result)
        result = clear_inbox(seat);
    if (!result)
        result = seat_alloc(seat, 2 * links * CUDA_PACKED_BYTES, &seat->packed);
    if (!result)
        result = seat_alloc(seat, PLAN_PROGRAMS_MAX * sizeof(struct cuda_team), &seat->teams);
    if (!result)
        result = seat_alloc(seat, each * (size_t)shape->size, &seat->segments);
    if (!result)
        result = alloc_board(seat);
    if (result)
        cuda_seat_close(seat, false);
    else
        *ret_seat = seat;
    return result;
}

bool cuda_seat_is_settled(const struct cuda_seat *seat)
{
    size_t links = links_of(seat);
    struct link_out *out = calloc(links, sizeof(*out));
    struct link_credit *credits = calloc(links, sizeof(*credits));
    bool settled = out && credits;

    if (settled && seat->world)
        settled =
            !copy(seat, seat->world + sizeof(struct exec_world), NULL, out, links * sizeof(*out)) &&
            !copy(seat, seat->inbox, NULL, credits, links * sizeof(*credits));
    for (size_t i = 0; settled && seat->world && i < links; i++)
        settled = out[i].sent == atomic_load_explicit(&credits[i].consumed, memory_order_relaxed);
    free(out);
    free(credits);
    return settled;
}

void cuda_seat_close(struct cuda_seat *seat, bool keep_inbox)
{
    if (!seat)
        return;
    if (!keep_inbox)
        seat_free(seat, seat->inbox);
    seat_free(seat, seat->packed);
    seat_free(seat, seat->world);
    seat_free(seat, seat->teams);
    seat_free(seat, seat->segments);
    seat_free(seat, cuda_address(seat->board));
    free(seat);
}

CUdeviceptr cuda_seat_inbox(const struct cuda_seat *seat, size_t *ret_bytes)
{
    *ret_bytes = inbox_bytes(seat);
    return seat->inbox;
}

static CUdeviceptr credit_at(const struct cuda_seat *seat, CUdeviceptr inbox, size_t link)
{
    (void)seat;
    return inbox + link * sizeof(struct link_credit);
}

static CUdeviceptr shorts_at(const struct cuda_seat *seat, CUdeviceptr inbox, size_t link)
{
    return credit_at(seat, inbox, links_of(seat)) + link * sizeof(struct cuda_shorts);
}

static CUdeviceptr slots_at(const struct cuda_seat *seat, CUdeviceptr inbox, size_t link)
{
    return shorts_at(seat, inbox, links_of(seat)) + link * slots_bytes(seat);
}

/* Both ends that this rank has of lane `lane` with `peer`. */
static void make_links(const struct cuda_seat *seat, int lane, int peer, CUdeviceptr theirs,
                       struct link_out *out, struct link_in *in)
{
    size_t mine = (size_t)lane * (size_t)seat->shape.size + (size_t)peer;
    size_t my = (size_t)lane * (size_t)seat->shape.size + (size_t)seat->shape.rank;
    uint32_t slots = (uint32_t)seat->shape.slots;

    *out = (struct link_out){.slots = at(slots_at(seat, theirs, my)),
                             .credit = at(credit_at(seat, seat->inbox, mine)),
                             .stride = link_stride(seat->shape.slot_bytes),
                             .shorts = at(shorts_at(seat, theirs, my)),
                             .packed = at(seat->packed + 2 * mine * CUDA_PACKED_BYTES),
                             .slot_count = slots,
                             .sent = seat->shape.start,
                             .consumed = seat->shape.start,
                             .index = seat->shape.start % slots};
    *in = (struct link_in){.slots = at(slots_at(seat, seat->inbox, mine)),
                           .credit = at(credit_at(seat, theirs, my)),
                           .stride = link_stride(seat->shape.slot_bytes),
                           .shorts = at(shorts_at(seat, seat->inbox, mine)),
                           .packed = at(seat->packed + (2 * mine + 1) * CUDA_PACKED_BYTES),
                           .slot_count = slots,
                           .received = seat->shape.start,
                           .index = seat->shape.start % slots};
}

rondo_result cuda_seat_connect(struct cuda_seat *seat, const CUdeviceptr *inboxes)
{
    size_t links = links_of(seat), size = (size_t)seat->shape.size;
    size_t bytes = sizeof(struct exec_world) + size * sizeof(struct exec_peer) +
                   links * (sizeof(struct link_out) + sizeof(struct link_in));
    struct exec_world *world = calloc(1, bytes);
    struct link_out *out;
    struct link_in *in;
    rondo_result result = seat_alloc(seat, bytes, &seat->world);

    if (!world)
        result =
            rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for %zu bytes of links.", bytes);
    if (!result) {
        out = (struct link_out *)(void *)(world + 1);
        in = (struct link_in *)(void *)(out + links);
        for (int lane = 0; lane < PLAN_LANES; lane++)
            for (int peer = 0; peer < seat->shape.size; peer++) {
                size_t link = (size_t)lane * size + (size_t)peer;

                make_links(seat, lane, peer, inboxes[peer], &out[link], &in[link]);
            }
        world->rank = seat->shape.rank;
        world->size = seat->shape.size;
        world->slot_bytes = seat->shape.slot_bytes;
        world->out = at(seat->world + sizeof(*world));
        world->in = at(seat->world + sizeof(*world) + links * sizeof(*out));
        world->peers = at(seat->world + sizeof(*world) + links * (sizeof(*out) + sizeof(*in)));
        result = seat_upload(seat, seat->world, world, bytes);
    }
    free(world);
    return result;
}

rondo_result cuda_seat_segments(struct cuda_seat *seat, int peer,
                                const struct cuda_segment *segments, unsigned count)
{
    unsigned most = seat->shape.segments_each;

    if (count > most)
        return rondo_fail(RONDO_ERROR_INTERNAL, "%u segments of rank %d are more than %u.", count,
                          peer, most);
    return seat_upload(seat, seat->segments + (size_t)peer * most * sizeof(struct cuda_segment),
                       segments, count * sizeof(struct cuda_segment));
}

/* ---- How it goes ----------------------------------------------------------------------------- */

void cuda_seat_look(const struct cuda_seat *seat, struct cuda_look *ret_look)
{
    struct cuda_look look = {.state = EXEC_DONE};
    const struct cuda_halt *halt = &seat->board->halt;
    int programs = atomic_load_explicit(&seat->programs, memory_order_relaxed);

    /* Acquire, pairs with the release in halt() on the device. */
    if (__atomic_load_n(&halt->failed.state, __ATOMIC_ACQUIRE) != EXEC_DONE) {
        *ret_look = (struct cuda_look){.state = EXEC_MISMATCH,
                                       .program = (int)halt->program,
                                       .step = halt->failed.step,
                                       .blamed = (int)halt->failed.blamed,
                                       .foreign = halt->failed.foreign};
        return;
    }
    for (int p = 0; p < programs; p++) {
        const struct cuda_status *status = &seat->board->status[p];
        /* Acquire, pairs with the release in lead() on the device. */
        uint32_t state = __atomic_load_n(&status->state, __ATOMIC_ACQUIRE);

        if (state == EXEC_DONE || (look.state != EXEC_DONE && state == EXEC_BLOCKED))
            continue;
        look = (struct cuda_look){.state = (enum exec_state)state,
                                  .program = p,
                                  .step = __atomic_load_n(&status->step, __ATOMIC_ACQUIRE),
                                  .blamed = (int)__atomic_load_n(&status->blamed, __ATOMIC_ACQUIRE),
                                  .foreign = __atomic_load_n(&status->foreign, __ATOMIC_ACQUIRE)};
        if (state != EXEC_BLOCKED)
            break;
    }
    *ret_look = look;
}

void cuda_seat_stop(struct cuda_seat *seat)
{
    /* Release, pairs with the acquire in look_up() on the device. */
    __atomic_store_n(&seat->board->halt.stop, 1, __ATOMIC_RELEASE);
}
