/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - libibverbs, loaded when it is wanted: a library that was built with RDMA runs on
 * machines that have none.
 *
 * The table has the functions that the library exports. Posting and polling are no functions of
 * it: they go through the tables of a context (ibv_post_send() and the like in verbs.h).
 */
#ifndef RONDO_TRANSPORT_VERBS_CALLS_H
#define RONDO_TRANSPORT_VERBS_CALLS_H

#include "rondo/rondo.h"

#include <infiniband/verbs.h>

/* verbs.h has macros of some of these names; the table has the functions behind them. */
struct verbs_calls {
    const char *folder; /* where its devices are described: topology/rdma.h */
    struct ibv_device **(*list_devices)(int *count);
    void (*free_list)(struct ibv_device **list);
    const char *(*device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attributes);
    /* Fills what the structure had in its first version; the caller zeroes the rest. */
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes);
    int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
    int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *key);
    struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
    int (*dealloc_pd)(struct ibv_pd *pd);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *memory, size_t bytes, int access);
    int (*dereg_mr)(struct ibv_mr *mr);
    struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int vector);
    int (*destroy_cq)(struct ibv_cq *cq);
    struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes);
    int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask);
    int (*destroy_qp)(struct ibv_qp *qp);
    int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);
    void (*ack_async_event)(struct ibv_async_event *event);
    const char *(*status_text)(enum ibv_wc_status status);
    const char *(*event_text)(enum ibv_event_type type);
    /* NULL in older versions: */
    int (*fork_init)(void);
    struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t iova,
                                   unsigned access);
    struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access);
};

/* Load it, once per process. RONDO_ERROR_UNSUPPORTED with a sentence if it is not installed. */
rondo_result verbs_load(const struct verbs_calls **ret_calls);
/* For tests: what verbs_load() gives from now on; NULL: the real one again. */
void verbs_load_instead(const struct verbs_calls *calls);

#endif
