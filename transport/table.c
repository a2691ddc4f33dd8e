/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - all transports there are, best first: ranks use the first that can link them. */
#include "transport/link/ops.h"

#include <stddef.h>

const struct transport_ops *const transports[] = {
    &shm_transport,
    &verbs_transport,
    &tcp_transport,
    NULL,
};
