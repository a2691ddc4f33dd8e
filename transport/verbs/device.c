/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - opens a port, and listens to what its adapter has to say about it. */
#include "transport/verbs/device.h"

#include "transport/verbs/open.h"
#include "transport/verbs/queue.h"

#include "base/fail.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening --------------------------------------------------------------------------------- */

static struct ibv_context *open_by_name(const struct verbs_calls *calls, const char *name)
{
    struct ibv_context *context = NULL;
    int count = 0;
    struct ibv_device **list = calls->list_devices(&count);

    errno = ENODEV;
    for (int i = 0; list && i < count; i++)
        if (strcmp(calls->device_name(list[i]), name) == 0)
            context = calls->open_device(list[i]);
    if (list)
        calls->free_list(list);
    return context;
}

/* The first partition of which the port is a full member: members that are not can talk to full
 * ones only. */
static uint16_t choose_partition(const struct verbs_device *device, int keys)
{
    const uint16_t full = 0x8000;
    __be16 key;

    for (int i = 0; i < keys; i++)
        if (!device->calls->query_pkey(device->context, (uint8_t)device->port, i, &key) &&
            ntohs(key) & full)
            return (uint16_t)i;
    return 0;
}

static rondo_result learn(struct verbs_device *device)
{
    const struct verbs_calls *calls = device->calls;
    struct ibv_device_attr attributes = {0};
    struct ibv_port_attr port = {0};
    int error = calls->query_device(device->context, &attributes);

    if (!error)
        error = calls->query_port(device->context, (uint8_t)device->port, &port);
    if (error) {
        errno = error;
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "%s port %d does not say what it can",
                                device->name, device->port);
    }
    device->lid = port.lid;
    device->pkey_index = choose_partition(device, port.pkey_tbl_len);
    device->routed = device->ethernet || port.flags & IBV_QPF_GRH_REQUIRED;
    device->mtu = port.active_mtu;
    device->most_requests = attributes.max_qp_wr;
    device->most_completions = attributes.max_cqe;
    return RONDO_OK;
}

rondo_result verbs_device_look(struct verbs_device *device)
{
    const struct verbs_calls *calls = device->calls;
    struct ibv_port_attr port = {0};
    union ibv_gid gid;
    rondo_result result = verbs_device_check(device);

    if (result)
        return result;
    if (!calls->query_port(device->context, (uint8_t)device->port, &port) &&
        port.state == IBV_PORT_ACTIVE && port.lid == device->lid &&
        !calls->query_gid(device->context, (uint8_t)device->port, device->gid.index, &gid) &&
        memcmp(gid.raw, device->gid.raw, sizeof(gid.raw)) == 0)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "%s port %d is not active any more, or has another address than before; it "
                      "is looked for anew when all communicators are closed.",
                      device->name, device->port);
}

/* Some adapters have ports that look like those of RoCE, and no reliable connections. */
static rondo_result try_queue(struct verbs_device *device)
{
    struct verbs_queue queue;
    rondo_result result = verbs_queue_open(device, 1, 1, &queue);

    if (!result)
        verbs_queue_close(&queue);
    return result;
}

rondo_result verbs_device_open(const struct verbs_calls *calls, const struct rdma_port *port,
                               const struct rdma_gid *gid, struct verbs_device **ret_device)
{
    struct verbs_device *device = calloc(1, sizeof(*device));
    rondo_result result;

    if (!device)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %s.", port->device);
    device->calls = calls;
    snprintf(device->name, sizeof(device->name), "%s", port->device);
    device->port = port->number;
    device->ethernet = port->ethernet;
    device->soft = port->soft;
    device->gid = *gid;
    device->context = open_by_name(calls, port->device);
    if (!device->context) {
        result = rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                  "Cannot open %s; in a container /dev/infiniband must be there",
                                  port->device);
        goto fail;
    }
    result = learn(device);
    if (result)
        goto fail;
    /* Events are asked for now and then and never waited for. */
    fcntl(device->context->async_fd, F_SETFL,
          fcntl(device->context->async_fd, F_GETFL) | O_NONBLOCK);
    device->pd = calls->alloc_pd(device->context);
    if (!device->pd) {
        result = rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot use %s (no protection domain)",
                                  port->device);
        goto fail;
    }
    verbs_memory_init(&device->memory, calls, device->pd, device->name);
    lock_init(&device->lock, LOCK_VERBS_DEVICE);
    lock_init(&device->trying, LOCK_VERBS_TRIALS);
    result = try_queue(device);
    if (result) {
        verbs_device_close(device);
        return result;
    }
    *ret_device = device;
    return RONDO_OK;
fail:
    if (device->context)
        calls->close_device(device->context);
    free(device);
    return result;
}

void verbs_device_close(struct verbs_device *device)
{
    verbs_memory_done(&device->memory);
    device->calls->dealloc_pd(device->pd);
    device->calls->close_device(device->context);
    lock_done(&device->lock);
    lock_done(&device->trying);
    free(device);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static bool is_fatal(enum ibv_event_type type)
{
    return type == IBV_EVENT_DEVICE_FATAL;
}

/* Queues report their own failures as completions, with the peer known: not of interest here. */
static bool concerns_port(const struct verbs_device *device, const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        return event->element.port_num == device->port;
    default:
        return false;
    }
}

/* With the lock held. */
static void note_event(struct verbs_device *device, const struct ibv_async_event *event)
{
    if (!is_fatal(event->event_type) && !concerns_port(device, event))
        return;
    device->dead |= is_fatal(event->event_type);
    if (event->event_type == IBV_EVENT_PORT_ACTIVE)
        device->trouble[0] = 0;
    else if (event->event_type == IBV_EVENT_PORT_ERR || device->dead)
        snprintf(device->trouble, sizeof(device->trouble), "%s",
                 device->calls->event_text(event->event_type));
    log_warn("%s port %d says: %s", device->name, device->port,
             device->calls->event_text(event->event_type));
}

rondo_result verbs_device_check(struct verbs_device *device)
{
    struct ibv_async_event event;
    bool dead;

    lock_take(&device->lock);
    while (device->calls->get_async_event(device->context, &event) == 0) {
        note_event(device, &event);
        device->calls->ack_async_event(&event);
    }
    dead = device->dead;
    lock_give(&device->lock);
    if (dead)
        return rondo_fail(RONDO_ERROR_SYSTEM,
                          "%s port %d cannot be used any more: %s. Look at the kernel's log.",
                          device->name, device->port, device->trouble);
    return RONDO_OK;
}

void verbs_device_describe(struct verbs_device *device, char *text, size_t room)
{
    char address[64];

    rdma_gid_text(&device->gid, address, sizeof(address));
    lock_take(&device->lock);
    snprintf(text, room, "%s port %d (%s)%s%s", device->name, device->port, address,
             device->trouble[0] ? ", which says: " : "", device->trouble);
    lock_give(&device->lock);
}
