/* SPDX-License-Identifier: BSD-3-Clause */
/* grow.h - a communicator of members and newcomers. */
#ifndef RONDO_DDP_ELASTIC_GROW_H
#define RONDO_DDP_ELASTIC_GROW_H

#include "rondo/rondo.h"

/*
 * Members give the communicator that they have, which stays as it is; newcomers NULL. All ranks
 * get the new one, or none does. If somebody does not come, it fails within `PATIENCE_GROW`
 * and the second more after which nobody waits for an answer of the meeting point.
 */
rondo_result elastic_grow(rondo_comm *comm, const rondo_unique_id *id, int size, int rank,
                          const rondo_config *config, rondo_comm **ret_grown);

#endif
