/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * try.c - an adapter and a GPU are tried before they are trusted with each other.
 *
 *     host   == RDMA write ==>  device   read by the device, compared with what was there and came
 *     device == RDMA write ==>  host     compared
 *
 * Both over a connection of the port with itself. That a registration succeeds does not say that
 * bytes arrive: without peer-to-peer support of the kernel, behind an IOMMU or with a platform that
 * does not pass such traffic, they can get lost or stay out of the device's sight.
 */
#include "transport/verbs/try.h"

#include "transport/verbs/inside.h"
#include "transport/verbs/queue.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRY_BYTES = 256 << 10, PAGE = 4096, DEPTH = 64, RECEIVES = 4 };

struct attempt {
    struct verbs_device *device;
    const struct device_source *source;
    struct device_memory memory;
    struct ibv_mr *memory_mr, *host_mr;
    char *host; /* what is written; behind it, what is written to; behind that, what is expected */
    struct verbs_queue from, to;
    uint64_t sent; /* immediates */
};

/* ---- Getting ready --------------------------------------------------------------------------- */

static rondo_result prepare_memory(struct attempt *attempt, enum device_way way)
{
    struct verbs_device *device = attempt->device;
    const struct device_source *source = attempt->source;
    const struct verbs_part all = {0, TRY_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    rondo_result result =
        source->take(source->context, TRY_BYTES, way == DEVICE_DMABUF, &attempt->memory);

    if (result)
        return result;
    attempt->host = aligned_alloc(PAGE, 3 * (size_t)TRY_BYTES);
    if (!attempt->host)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory");
    attempt->host_mr = device->calls->reg_mr(device->pd, attempt->host, 2 * (size_t)TRY_BYTES,
                                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!attempt->host_mr)
        return rondo_fail_errno(RONDO_ERROR_MEMORY, "%s refused memory of the host", device->name);
    return verbs_register_device(device, way, &attempt->memory, &all, &attempt->memory_mr);
}

static rondo_result connect_to_itself(struct attempt *attempt)
{
    struct verbs_port_endpoint from, to;
    rondo_result result = verbs_queue_open(attempt->device, DEPTH, RECEIVES, &attempt->from);

    if (!result)
        result = verbs_queue_open(attempt->device, DEPTH, RECEIVES, &attempt->to);
    if (result)
        return result;
    verbs_queue_endpoint(&attempt->from, &from);
    verbs_queue_endpoint(&attempt->to, &to);
    result = verbs_queue_connect(&attempt->to, &from);
    return result ? result : verbs_queue_connect(&attempt->from, &to);
}

static void end(struct attempt *attempt)
{
    const struct verbs_calls *calls = attempt->device->calls;

    verbs_queue_close(&attempt->from);
    verbs_queue_close(&attempt->to);
    if (attempt->memory_mr)
        calls->dereg_mr(attempt->memory_mr);
    if (attempt->host_mr)
        calls->dereg_mr(attempt->host_mr);
    free(attempt->host);
    attempt->source->give(attempt->source->context, &attempt->memory);
}

/* ---- Trying ---------------------------------------------------------------------------------- */

static void fill(char *bytes, uint32_t seed)
{
    for (size_t i = 0; i < TRY_BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (char)(seed >> 24);
    }
}

/* One write, and the immediate behind it. */
static rondo_result transfer(struct attempt *attempt, struct verbs_write *write)
{
    const struct verbs_write last = {.immediate = true};
    double end = clock_seconds() + PATIENCE_TRY;
    char text[512];

    verbs_queue_add(&attempt->from, write);
    verbs_queue_add(&attempt->from, &last);
    verbs_queue_flush(&attempt->from);
    attempt->sent++;
    while (attempt->to.arrived < attempt->sent) {
        struct verbs_queue *queues[] = {&attempt->from, &attempt->to};

        for (int i = 0; i < 2; i++) {
            verbs_queue_poll(queues[i]);
            if (!verbs_queue_failed(queues[i]))
                continue;
            verbs_queue_describe(queues[i], text, sizeof(text));
            return rondo_fail(RONDO_ERROR_SYSTEM, "%s", text);
        }
        if (attempt->to.arrived < attempt->sent && clock_seconds() > end)
            return rondo_fail(RONDO_ERROR_TIMEOUT, "a write of %u bytes took more than %.0f s",
                              write->bytes, PATIENCE_TRY);
        sched_yield();
    }
    return RONDO_OK;
}

static rondo_result compare(const struct attempt *attempt, const char *came, const char *direction)
{
    const char *expected = attempt->host + 2 * (size_t)TRY_BYTES;
    size_t at = 0;

    while (at < TRY_BYTES && came[at] == expected[at])
        at++;
    if (at == TRY_BYTES)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_SYSTEM, "byte %zu that went %s is wrong", at, direction);
}

/* Bytes of the host into the device. Both ends are filled before, so it shows what went astray. */
static rondo_result try_into(struct attempt *attempt, size_t at, uint32_t bytes, uint32_t seed)
{
    const struct device_source *source = attempt->source;
    char *back = attempt->host + TRY_BYTES, *expected = back + TRY_BYTES;
    struct verbs_write write = {.from = attempt->host + at,
                                .bytes = bytes,
                                .local_key = attempt->host_mr->lkey,
                                .to = attempt->memory.address + at,
                                .remote_key = attempt->memory_mr->rkey};
    rondo_result result;

    fill(attempt->host, seed);
    fill(expected, seed + 1);
    result = source->write(source->context, attempt->memory.address, expected, TRY_BYTES);
    if (!result)
        result = transfer(attempt, &write);
    if (!result)
        result = source->read(source->context, back, attempt->memory.address, TRY_BYTES);
    memcpy(expected + at, attempt->host + at, bytes);
    return result ? result : compare(attempt, back, "into the device");
}

static rondo_result try_out(struct attempt *attempt, size_t at, uint32_t bytes, uint32_t seed)
{
    const struct device_source *source = attempt->source;
    char *to = attempt->host + TRY_BYTES, *expected = to + TRY_BYTES;
    struct verbs_write write = {.from = (const void *)(uintptr_t)(attempt->memory.address + at),
                                .bytes = bytes,
                                .local_key = attempt->memory_mr->lkey,
                                .to = (uintptr_t)(to + at),
                                .remote_key = attempt->host_mr->rkey,
                                .device = true};
    rondo_result result;

    fill(attempt->host, seed);
    fill(to, seed + 1);
    fill(expected, seed + 1);
    memcpy(expected + at, attempt->host + at, bytes);
    result = source->write(source->context, attempt->memory.address, attempt->host, TRY_BYTES);
    if (!result)
        result = transfer(attempt, &write);
    return result ? result : compare(attempt, to, "out of the device");
}

static rondo_result try_all(struct attempt *attempt)
{
    static const struct {
        uint32_t at, bytes;
    } trials[] = {{0, 8},        {0, PAGE}, {64, 65536}, {PAGE - 8, 100004}, {TRY_BYTES - 16, 16},
                  {0, TRY_BYTES}};
    rondo_result result = RONDO_OK;

    for (uint32_t i = 0; i < sizeof(trials) / sizeof(trials[0]) && !result; i++) {
        result = try_into(attempt, trials[i].at, trials[i].bytes, 4 * i + 1);
        if (!result)
            result = try_out(attempt, trials[i].at, trials[i].bytes, 4 * i + 3);
    }
    return result;
}

/* Asks whether the adapter's driver knows of dmabuf at all: it says so of a file that is none. */
static rondo_result probe(const struct verbs_device *device)
{
    struct ibv_mr *mr;

    if (!device->calls->reg_dmabuf_mr)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "this libibverbs knows no dmabuf");
    errno = 0;
    mr = device->calls->reg_dmabuf_mr(device->pd, 0, PAGE, 0, -1, IBV_ACCESS_LOCAL_WRITE);
    if (mr)
        device->calls->dereg_mr(mr);
    else if (errno != EBADF)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "%s or its driver knows no dmabuf: %s",
                          device->name, strerror(errno));
    return RONDO_OK;
}

static rondo_result attempt_once(struct verbs_device *device, enum device_way way,
                                 const struct device_source *source)
{
    struct attempt attempt = {.device = device, .source = source};
    rondo_result result = way == DEVICE_DMABUF ? probe(device) : RONDO_OK;

    if (result)
        return result;
    result = prepare_memory(&attempt, way);
    if (!result)
        result = connect_to_itself(&attempt);
    if (!result)
        result = try_all(&attempt);
    end(&attempt);
    return result;
}

static struct verbs_trial *find_trial(struct verbs_device *device, int way, const char *name)
{
    for (int i = 0; i < device->trials; i++)
        if (device->trial[i].way == way && strcmp(device->trial[i].name, name) == 0)
            return &device->trial[i];
    return NULL;
}

rondo_result verbs_try(struct verbs_device *device, enum device_way way,
                       const struct device_source *source)
{
    struct verbs_trial *trial;
    rondo_result result;

    lock_take(&device->trying);
    trial = find_trial(device, way, source->name);
    if (trial) {
        result = trial->result ? rondo_fail(trial->result, "%s", trial->sentence) : RONDO_OK;
        lock_give(&device->trying);
        return result;
    }
    result = attempt_once(device, way, source);
    if (device->trials < VERBS_TRIALS) {
        trial = &device->trial[device->trials++];
        *trial = (struct verbs_trial){.way = way, .result = result};
        snprintf(trial->name, sizeof(trial->name), "%s", source->name);
        if (result)
            snprintf(trial->sentence, sizeof(trial->sentence), "%s", fail_sentence());
    }
    lock_give(&device->trying);
    if (result)
        log_info("%s may not use memory of %s by %s: %s", device->name, source->name,
                 verbs_way_name(way), fail_sentence());
    else
        log_info("%s reads and writes memory of %s by %s, as was tried", device->name, source->name,
                 verbs_way_name(way));
    return result;
}

/* ---- All rails ------------------------------------------------------------------------------- */

/* The module that makes the kernel understand addresses of a device. */
static bool knows_peer_memory(void)
{
    return !access("/sys/module/nvidia_peermem", F_OK) ||
           !access("/sys/kernel/mm/memory_peers", F_OK);
}

enum device_way verbs_try_device(struct network *base, const struct device_source *device,
                                 const char *wanted)
{
    const struct verbs_network *network = (const struct verbs_network *)(const void *)base;
    bool any = strcmp(wanted, "auto") == 0;
    const bool may[DEVICE_WAYS] = {[DEVICE_DMABUF] = any || strcmp(wanted, "dmabuf") == 0,
                                   [DEVICE_PEER] =
                                       (any && knows_peer_memory()) || strcmp(wanted, "peer") == 0};

    for (int way = DEVICE_DMABUF; way < DEVICE_WAYS; way++) {
        bool all = may[way];

        for (int i = 0; i < network->rails.count && all; i++)
            all = !verbs_try(network->rails.device[i], (enum device_way)way, device);
        if (all)
            return (enum device_way)way;
    }
    if (any && !knows_peer_memory())
        log_info("memory of %s by peer memory is not tried: the module nvidia_peermem is not "
                 "loaded",
                 device->name);
    return DEVICE_STAGED;
}
