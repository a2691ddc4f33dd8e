/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.c - the table of transports, best first. */
#include "transport/transport.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

static const struct transport_ops *const transports[] = {&shm_transport, &verbs_transport,
                                                         &tcp_transport};

enum { TRANSPORTS = sizeof(transports) / sizeof(transports[0]) };

rondo_result transport_choose(const struct rank_card *own, const struct rank_card *peer,
                              const char *wanted, const struct transport_ops **ret_transport)
{
    char reasons[256] = "";
    size_t used = 0;

    for (int i = 0; i < TRANSPORTS; i++) {
        const char *why = "";

        if (strcmp(wanted, "auto") != 0 && strcmp(wanted, transports[i]->name) != 0)
            continue;
        if (transports[i]->can_connect(own, peer, &why)) {
            *ret_transport = transports[i];
            return RONDO_OK;
        }
        used += (size_t)snprintf(reasons + used, sizeof(reasons) - used, "%s%s: %s",
                                 used ? "; " : "", transports[i]->name, why);
        if (used >= sizeof(reasons))
            break;
    }
    return rondo_fail(RONDO_ERROR_UNSUPPORTED, "Rank %d cannot reach rank %d (%s).", own->rank,
                      peer->rank, reasons);
}
