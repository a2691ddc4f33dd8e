/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.h - a rank that has been told where to wait: it goes there, lets others wait with it if it
 * was asked to, and passes on to them what it hears.
 */
#ifndef RONDO_COMM_RENDEZVOUS_RELAY_H
#define RONDO_COMM_RENDEZVOUS_RELAY_H

#include "comm/rendezvous/connector.h"

/* `me` is at the meeting point and has got `position`. Afterwards it may be connected elsewhere. */
rondo_result relay_take_position(struct connector *me, const struct wire_position *position,
                                 void *ret_blobs);

#endif
