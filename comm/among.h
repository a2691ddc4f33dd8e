/* SPDX-License-Identifier: BSD-3-Clause */
/* among.h - what the networks have to know of rondo_comm_open_among(). */
#ifndef RONDO_COMM_AMONG_H
#define RONDO_COMM_AMONG_H

#include "comm/state/board.h"

/* A note has come from another host: if it is an invitation, its rank's mirror shows it, as the
 * board does on the rank's own host. False: it is something else. */
bool among_heard(struct board *mirror, const void *note, size_t bytes);

#endif
