/* SPDX-License-Identifier: BSD-3-Clause */
/* rails.c - which ports this process uses; one set for all of its communicators. */
#include "transport/verbs/open.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/setting.h"
#include "transport/memory/heap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct lock lock;
    struct verbs_rails rails;
    unsigned users;
    pid_t pid; /* whose they are: a forked child opens its own */
} shared = {.lock = LOCK_AT(LOCK_VERBS_RAILS)};
FORK_RENEWS({.lock = &shared.lock});

/* ---- Choosing -------------------------------------------------------------------------------- */

static bool usable(const struct rdma_port *port, const struct rdma_range *range)
{
    return port->active && port->reliable && rdma_choose_gid(port, range);
}

/* True if the first `length` characters of `name` mean this port: "mlx5_0" or "mlx5_0:1". */
static bool means(const struct rdma_port *port, const char *name, size_t length)
{
    char full[80];

    snprintf(full, sizeof(full), "%s:%d", port->device, port->number);
    return (strlen(port->device) == length && !strncmp(port->device, name, length)) ||
           (strlen(full) == length && !strncmp(full, name, length));
}

static rondo_result choose_named(const struct rdma_port *ports, int count, const char *names,
                                 const struct rdma_range *range, const struct rdma_port **rails,
                                 int *ret_count)
{
    int chosen = 0;

    while (*names) {
        size_t length = strcspn(names, ",");
        int before = chosen;

        for (int i = 0; i < count; i++)
            if (means(&ports[i], names, length) && usable(&ports[i], range) &&
                chosen++ < VERBS_RAILS)
                rails[chosen - 1] = &ports[i];
        if (chosen == before)
            return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                              "RONDO_VERBS_DEVICES names '%.*s', which is no active RDMA port with "
                              "reliable connections and an address in RONDO_VERBS_ADDRESSES; "
                              "`rondo doctor` lists them.",
                              (int)length, names);
        names += length + (names[length] == ',');
    }
    if (chosen > VERBS_RAILS)
        log_warn("RONDO_VERBS_DEVICES names %d RDMA ports, of which the first %d are used", chosen,
                 VERBS_RAILS);
    *ret_count = chosen < VERBS_RAILS ? chosen : VERBS_RAILS;
    return RONDO_OK;
}

rondo_result verbs_rails_choose(const struct rdma_port *ports, int count, const char *names,
                                const struct rdma_range *range,
                                const struct rdma_port *ret_rails[VERBS_PORTS], int *ret_count)
{
    int chosen = 0;

    if (*names)
        return choose_named(ports, count, names, range, ret_rails, ret_count);
    for (int i = 0; i < count && chosen < VERBS_PORTS; i++)
        if (usable(&ports[i], range))
            ret_rails[chosen++] = &ports[i];
    if (!chosen)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "%s: `rondo doctor` says what is missing.",
                          !count ? "There is no RDMA device on this machine"
                                 : "No RDMA port is active, has reliable connections "
                                   "(InfiniBand, RoCE) and an address in "
                                   "RONDO_VERBS_ADDRESSES");
    *ret_count = chosen;
    return RONDO_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void close_all(void)
{
    for (int i = 0; i < shared.rails.count; i++)
        verbs_device_close(shared.rails.device[i]);
    shared.rails.count = 0;
}

/* Opens ports until there are rails enough. Unless all were named, those that cannot be opened are
 * left out: containers show all adapters, and have the files of some. */
static rondo_result open_rails(const struct verbs_calls *calls,
                               const struct rdma_port *const *ports, int count,
                               const struct rdma_range *range, bool named)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < count && shared.rails.count < VERBS_RAILS; i++) {
        struct verbs_device **device = &shared.rails.device[shared.rails.count];
        char text[256];

        result = verbs_device_open(calls, ports[i], rdma_choose_gid(ports[i], range), device);
        if (result && named)
            break;
        if (result) {
            log_info("%s port %d is no rail: %s", ports[i]->device, ports[i]->number,
                     fail_sentence());
            continue;
        }
        verbs_device_describe(*device, text, sizeof(text));
        log_info("rail %d is %s", shared.rails.count++, text);
    }
    if (shared.rails.count && !(result && named))
        return RONDO_OK;
    close_all();
    return result;
}

/* On older kernels an adapter loses sight of pages when the process forks, also of those of its
 * queues. There, this keeps them from children; on newer ones it does nothing. */
static void protect_from_forks(const struct verbs_calls *calls)
{
    int error = calls->fork_init ? calls->fork_init() : ENOSYS;

    if (error)
        log_warn("RDMA may fail when this process forks, as ibv_fork_init() did: %s",
                 strerror(error));
}

static rondo_result open_all(void)
{
    const char *names = setting_read_word(SETTING_VERBS_DEVICES);
    const struct rdma_port *chosen[VERBS_PORTS];
    struct rdma_port *ports = NULL;
    const struct verbs_calls *calls;
    struct rdma_range range;
    int count = 0, usable = 0;
    rondo_result result = rdma_range_read(setting_read_word(SETTING_VERBS_ADDRESSES), &range);

    if (!result)
        result = verbs_load(&calls);
    if (result)
        return result;
    protect_from_forks(calls);
    result = rdma_list(calls->folder, &ports, &count);
    if (!result)
        result = verbs_rails_choose(ports, count, names, &range, chosen, &usable);
    if (!result)
        result = open_rails(calls, chosen, usable, &range, *names);
    rdma_list_free(ports, count);
    return result;
}

/* Gives a new communicator those of the open rails that are still of use: an older one may have
 * broken because of the others. */
static rondo_result take_usable(struct verbs_rails *ret_rails)
{
    struct verbs_rails rails = {0};
    rondo_result result = RONDO_OK;

    for (int i = 0; i < shared.rails.count; i++) {
        rondo_result own = verbs_device_look(shared.rails.device[i]);

        if (own)
            log_info("%s", fail_sentence());
        else
            rails.device[rails.count++] = shared.rails.device[i];
        result = own ? own : result;
    }
    if (rails.count)
        *ret_rails = rails;
    return rails.count ? RONDO_OK : result;
}

/* Memory is about to be freed or mapped anew: no adapter keeps it registered. */
static void forget(const void *memory, size_t bytes)
{
    lock_take(&shared.lock);
    if (shared.pid == getpid())
        for (int i = 0; i < shared.rails.count; i++)
            verbs_memory_forget(&shared.rails.device[i]->memory, memory, bytes);
    lock_give(&shared.lock);
}

rondo_result verbs_rails_open(struct verbs_rails *ret_rails)
{
    rondo_result result = RONDO_OK;

    lock_take(&shared.lock);
    if (shared.pid != getpid()) { /* a forked child leaves its parent's queues alone */
        shared.rails.count = 0;
        shared.users = 0;
        shared.pid = getpid();
    }
    if (!shared.users)
        result = open_all();
    if (!result)
        result = take_usable(ret_rails);
    if (!result) {
        shared.users++;
        heap_watch(forget);
    } else if (!shared.users) {
        close_all();
    }
    lock_give(&shared.lock);
    return result;
}

void verbs_rails_close(void)
{
    lock_take(&shared.lock);
    if (--shared.users == 0)
        close_all();
    lock_give(&shared.lock);
}
