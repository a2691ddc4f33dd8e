/* SPDX-License-Identifier: BSD-3-Clause */
/* try.h - may an adapter be trusted with memory of a GPU? */
#ifndef RONDO_TRANSPORT_VERBS_TRY_H
#define RONDO_TRANSPORT_VERBS_TRY_H

#include "transport/link/device_memory.h"
#include "transport/verbs/device.h"

/* A range of device memory, and how an adapter may access it. */
struct verbs_part {
    size_t at, bytes;
    int access; /* IBV_ACCESS_..., which says nothing about order */
};

/* RONDO_ERROR_MEMORY with a sentence that begins with the adapter's name and has no full stop. */
rondo_result verbs_register_device(const struct verbs_device *device, enum device_way way,
                                   const struct device_memory *memory,
                                   const struct verbs_part *part, struct ibv_mr **ret_mr);
const char *verbs_way_name(enum device_way way);

/*
 * The adapter writes into device memory and reads from it, over a connection with itself: several
 * lengths, at several places, other bytes each time, all of which are compared. RONDO_OK if all
 * were right, else a sentence. What was found is remembered for as long as the port is open.
 */
rondo_result verbs_try(struct verbs_device *device, enum device_way way,
                       const struct device_source *source);

#endif
