/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.c - the table of transports, best first. */
#include "transport/transport.h"

#include "base/fail.h"

#include <stdio.h>

static const struct transport_ops *const transports[] = {&shm_transport};

enum { TRANSPORTS = sizeof(transports) / sizeof(transports[0]) };

rondo_result transport_choose(const struct rank_card *own, const struct rank_card *peer,
                              const struct transport_ops **ret_transport)
{
    char reasons[256] = "";
    size_t used = 0;

    for (int i = 0; i < TRANSPORTS; i++) {
        const char *why = "";

        if (transports[i]->can_connect(own, peer, &why)) {
            *ret_transport = transports[i];
            return RONDO_OK;
        }
        used += (size_t)snprintf(reasons + used, sizeof(reasons) - used, "%s%s: %s", i ? "; " : "",
                                 transports[i]->name, why);
        if (used >= sizeof(reasons))
            break;
    }
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "Rank %d cannot reach rank %d (%s). Start all ranks on one host.", own->rank,
                      peer->rank, reasons);
}
