/* SPDX-License-Identifier: BSD-3-Clause */
/* open.h - opening and closing one port, for verbs/rails.c. */
#ifndef RONDO_TRANSPORT_VERBS_OPEN_H
#define RONDO_TRANSPORT_VERBS_OPEN_H

#include "transport/verbs/device.h"

rondo_result verbs_device_open(const struct verbs_calls *calls, const struct rdma_port *port,
                               const struct rdma_gid *gid, struct verbs_device **ret_device);
void verbs_device_close(struct verbs_device *device);
/* Fails, with a sentence, if the port is not as usable as it was when it was opened. */
rondo_result verbs_device_look(struct verbs_device *device);

#endif
