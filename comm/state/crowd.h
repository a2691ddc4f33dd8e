/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.h - how many ranks share how many cores, by everybody's cards, and what is chosen so. */
#ifndef RONDO_COMM_STATE_CROWD_H
#define RONDO_COMM_STATE_CROWD_H

#include "comm/state/comm.h"

/* Cores that all ranks have, the same on every rank. */
int crowd_cores(const rondo_comm *comm);
void crowd_choose_spinning(rondo_comm *comm);
struct link_rooms crowd_choose_rooms(const rondo_comm *comm);
/* Make the rings of shallow lanes short where ranks share cores. All links are there. */
void crowd_make_shallow(rondo_comm *comm);

#endif
