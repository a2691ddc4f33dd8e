/* SPDX-License-Identifier: BSD-3-Clause */
/* networks.h - the networks of a communicator, in stages of opening it. */
#ifndef RONDO_COMM_NETWORKS_H
#define RONDO_COMM_NETWORKS_H

#include "comm/state/comm.h"

/* Listens, and says in the endpoint where. */
rondo_result networks_open(rondo_comm *comm);
/* Decides how long the slots of networks are. */
rondo_result networks_size_slots(rondo_comm *comm);
/* Networks that no rank needs are closed. */
rondo_result networks_start(rondo_comm *comm);
void networks_close(rondo_comm *comm);

#endif
