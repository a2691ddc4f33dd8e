/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.h - a rank that has been told where to sit: it goes there, lets others sit with
 * it if it was asked to, and passes on to them what it hears.
 */
#ifndef RONDO_COMM_RENDEZVOUS_RELAY_H
#define RONDO_COMM_RENDEZVOUS_RELAY_H

#include "comm/rendezvous/seeker.h"

/* `me` is at the meeting point and has got `seat`. Afterwards it may be connected elsewhere. */
rondo_result relay_sit(struct seeker *me, const struct wire_seat *seat, void *ret_blobs);

#endif
