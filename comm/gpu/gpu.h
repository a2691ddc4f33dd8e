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
/* Fill the device's part of the rank's endpoint. */
rondo_result gpu_make_endpoint(rondo_comm *comm, struct device_endpoint *endpoint);
/* Makes plans on the devices, if all ranks can reach each other. */
rondo_result gpu_connect(rondo_comm *comm);
/*
 * Finds out together with the other ranks' devices what needs all of them, when all have got there.
 */
rondo_result gpu_settle(rondo_comm *comm);
/* Agrees whether devices will move messages between nodes. All ranks find the same. */
void gpu_agree(rondo_comm *comm);
/* Tells adapters of devices: the way to reach them, and whose memory; NULL: nobody's. */
const struct device_source *gpu_device_source(const rondo_comm *comm, enum device_way *ret_way);
/*
 * The communicator is about to be closed: from now on no stream hands over a call of it, which
 * would take a turn. False: it is sound, and streams have still to come to calls or to launched
 * graphs of it; ask again. A broken one waits for no stream.
 */
bool gpu_shut(rondo_comm *comm);
/* All calls that streams have made have ended; the networks may be closed. Accepts NULL. */
void gpu_stop(struct gpu *gpu);
/* Waits for what streams have still to do, unless the communicator is broken: what they may come to
 * later stays. False: some of that touches memory of peers. Accepts NULL for each. */
bool gpu_close(struct gpu *gpu, const rondo_comm *comm);

/* Brings the memory of calls to where the host or the device can use it, and moves messages. */
extern const struct backend gpu_backend;

/* The communicator's state includes what its device has done so far, and once it is broken, its
 * peers' devices have left the memory of calls, unless the log says otherwise. May take a while
 * then. Accepts NULL. */
void gpu_query(struct gpu *gpu);

#endif
