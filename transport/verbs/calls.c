/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - fills the table from the shared library, which stays loaded. */
#include "transport/verbs/calls.h"

#include "base/fail.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct verbs_calls loaded = {.folder = "/sys/class/infiniband"};
static const char *missing; /* what was not found, NULL: nothing */
static _Atomic(const struct verbs_calls *) instead;

struct wanted {
    const char *name;
    size_t at; /* in the table */
    bool needed;
};

#define CALL(field, name, needed)                         \
    {                                                     \
        name, offsetof(struct verbs_calls, field), needed \
    }

static const struct wanted wanted[] = {
    CALL(list_devices, "ibv_get_device_list", true),
    CALL(free_list, "ibv_free_device_list", true),
    CALL(device_name, "ibv_get_device_name", true),
    CALL(open_device, "ibv_open_device", true),
    CALL(close_device, "ibv_close_device", true),
    CALL(query_device, "ibv_query_device", true),
    CALL(query_port, "ibv_query_port", true),
    CALL(query_gid, "ibv_query_gid", true),
    CALL(query_pkey, "ibv_query_pkey", true),
    CALL(alloc_pd, "ibv_alloc_pd", true),
    CALL(dealloc_pd, "ibv_dealloc_pd", true),
    CALL(reg_mr, "ibv_reg_mr", true),
    CALL(dereg_mr, "ibv_dereg_mr", true),
    CALL(create_cq, "ibv_create_cq", true),
    CALL(destroy_cq, "ibv_destroy_cq", true),
    CALL(create_qp, "ibv_create_qp", true),
    CALL(modify_qp, "ibv_modify_qp", true),
    CALL(destroy_qp, "ibv_destroy_qp", true),
    CALL(get_async_event, "ibv_get_async_event", true),
    CALL(ack_async_event, "ibv_ack_async_event", true),
    CALL(status_text, "ibv_wc_status_str", true),
    CALL(event_text, "ibv_event_type_str", true),
    CALL(fork_init, "ibv_fork_init", false),
    CALL(reg_mr_iova2, "ibv_reg_mr_iova2", false),
    CALL(reg_dmabuf_mr, "ibv_reg_dmabuf_mr", false),
};

static void load(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        missing = "libibverbs.so.1";
        return;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);

        if (!function && wanted[i].needed)
            missing = wanted[i].name;
        /* A function pointer from a data pointer: what POSIX asks of dlsym(), not of C. */
        memcpy((char *)&loaded + wanted[i].at, &function, sizeof(function));
    }
}

rondo_result verbs_load(const struct verbs_calls **ret_calls)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct verbs_calls *other = atomic_load_explicit(&instead, memory_order_acquire);

    if (other) {
        *ret_calls = other;
        return RONDO_OK;
    }
    pthread_once(&once, load);
    if (missing)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "RDMA needs libibverbs, and %s was not found: install libibverbs1 and "
                          "ibverbs-providers (rdma-core).",
                          missing);
    *ret_calls = &loaded;
    return RONDO_OK;
}

void verbs_load_instead(const struct verbs_calls *calls)
{
    atomic_store_explicit(&instead, calls, memory_order_release);
}
