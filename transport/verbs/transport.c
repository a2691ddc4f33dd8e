/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.c - RDMA in the table of transports. A pair that uses it has its control line
 * over TCP: for the handshake, and to notice that a process has ended. */
#include "transport/link/ops.h"
#include "transport/verbs/verbs.h"

static bool can_connect(const struct rank_card *a, const struct rank_card *b, const char **why)
{
    return tcp_transport.can_connect(a, b, why) && verbs_reaches(&a->verbs, &b->verbs, why);
}

static rondo_result connect_pair(const struct transport_pair *pair, struct link_out *out,
                                 struct link_in *in)
{
    rondo_result result = tcp_transport.connect(pair, out, in);

    if (result)
        return result;
    return verbs_connect_links(pair->networks[NETWORK_VERBS], pair->peer->rank, out, in);
}

const struct transport_ops verbs_transport = {
    .name = "verbs",
    .can_connect = can_connect,
    .connect = connect_pair,
};
