/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.h - which transport two ranks use, of all that there are (link/ops.h). */
#ifndef RONDO_TRANSPORT_TRANSPORT_H
#define RONDO_TRANSPORT_TRANSPORT_H

#include "transport/link/ops.h"

/* The best transport for a pair, of all ("auto") or the one of that name;
 * RONDO_ERROR_UNSUPPORTED with a sentence that says why none can. */
rondo_result transport_choose(const struct rank_card *own, const struct rank_card *peer,
                              const char *wanted, const struct transport_ops **ret_transport);

#endif
