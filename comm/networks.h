/* SPDX-License-Identifier: BSD-3-Clause */
/* networks.h - the networks of a communicator, in the steps of opening it. */
#ifndef RONDO_COMM_NETWORKS_H
#define RONDO_COMM_NETWORKS_H

#include "comm/open.h"
#include "comm/state/comm.h"

/* comm_prepare(): listen, and say in the card where. */
rondo_result networks_open(rondo_comm *comm, struct rank_card *card);
/* Choose how long slots of networks are; with all cards there, before networks_start(). */
void networks_size_slots(rondo_comm *comm);
/* comm_connect(), with all cards there: networks that no rank needs are closed. */
rondo_result networks_start(rondo_comm *comm);
void networks_close(rondo_comm *comm);

#endif
