/* SPDX-License-Identifier: BSD-3-Clause */
/* absent.c - stands in for verbs*.c where the headers of libibverbs were not installed. */
#include "transport/verbs/verbs.h"

#include "base/fail.h"

static rondo_result refuse(void)
{
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "This Rondo was built without RDMA: install libibverbs-dev and build again.");
}

rondo_result verbs_open(struct verbs_card *ret_card, struct network **ret_network)
{
    (void)ret_card;
    (void)ret_network;
    return refuse();
}

enum device_way verbs_try_device(struct network *network, const struct device_source *device,
                                 const char *wanted)
{
    (void)network;
    (void)device;
    (void)wanted;
    return DEVICE_STAGED;
}

bool verbs_wants_long_slots(const struct network *network, size_t bytes)
{
    (void)network;
    (void)bytes;
    return false;
}

rondo_result verbs_start(struct network *network, const struct verbs_job *job)
{
    (void)network;
    (void)job;
    return refuse();
}

rondo_result verbs_connect_links(struct network *network, int peer, struct link_out *out,
                                 struct link_in *in)
{
    (void)network;
    (void)peer;
    (void)out;
    (void)in;
    return refuse();
}

bool verbs_reaches(const struct verbs_card *own, const struct verbs_card *peer, const char **why)
{
    (void)own;
    (void)peer;
    *why = "this Rondo was built without RDMA";
    return false;
}

void verbs_note(struct network *network, int peer, const void *bytes, size_t count)
{
    (void)network;
    (void)peer;
    (void)bytes;
    (void)count;
}
