/* SPDX-License-Identifier: BSD-3-Clause */
/* absent.c - RDMA in the table of transports where the headers of libibverbs were not installed. */
#include "transport/link/ops.h"

#include "base/fail.h"

static rondo_result refuse(const struct network_wish *wish, void *ret_part,
                           struct network **ret_network)
{
    (void)wish;
    (void)ret_part;
    (void)ret_network;
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "This Rondo was built without RDMA: install libibverbs-dev and build again.");
}

static bool can_connect(const struct transport_pair *pair, const char **why)
{
    (void)pair;
    *why = "this Rondo was built without RDMA";
    return false;
}

const struct transport_ops verbs_transport = {
    .name = "verbs", .can_connect = can_connect, .open = refuse, .optional = true};
