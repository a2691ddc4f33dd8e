/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.h - GPU memory in collective calls, as the rest of comm/ sees it. Without the CUDA toolkit
 * gpu/absent.c is built instead, and no communicator has a device.
 */
#ifndef RONDO_COMM_GPU_GPU_H
#define RONDO_COMM_GPU_GPU_H

#include "comm/engine/run.h"
#include "transport/link/device_memory.h"

/* The part of a communicator that belongs to a device. */
struct gpu;

/* The number of the device whose context is current on this thread, -1: none. */
int gpu_current(void);
/* `number` < 0: the communicator has no device, *ret_gpu is NULL. */
rondo_result gpu_open(int number, struct gpu **ret_gpu);
/* Fill the device's part of the rank's card. */
rondo_result gpu_make_card(rondo_comm *comm, struct device_card *card);
/* With everybody's cards and processes: plans on the devices, if all ranks can reach each other. */
rondo_result gpu_connect(rondo_comm *comm);
/* Then, when all ranks have got there: what they find out together. */
rondo_result gpu_settle(rondo_comm *comm);
/* With everybody's cards, before networks are set up: will devices move messages between nodes? */
void gpu_agree(rondo_comm *comm);
/* The way that gpu_agree() found, and who lends adapters memory for it; NULL: nobody. */
const struct device_source *gpu_lender(const rondo_comm *comm, enum device_way *ret_way);
/* All calls that streams have made have ended; the networks may be closed. Accepts NULL. */
void gpu_stop(struct gpu *gpu);
/* Waits for what streams have still to do, unless the communicator is broken. Accepts NULL. */
void gpu_close(struct gpu *gpu, bool broken);

/* Brings the memory of calls to where the host or the device can use it, and moves messages. */
extern const struct hands gpu_hands;

/* The communicator's state includes what its device has done so far, and once it is broken, its
 * peers' devices have left the memory of calls, unless the log says otherwise. May take a while
 * then. Accepts NULL. */
void gpu_query(struct gpu *gpu);

#endif
