/* SPDX-License-Identifier: BSD-3-Clause */
/* host.h - facts about where this process runs that decide
 * whether and how well it can share memory with another. */
#ifndef RONDO_COMM_RENDEZVOUS_HOST_H
#define RONDO_COMM_RENDEZVOUS_HOST_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>

/* Equal for processes that see each other's process numbers and may look at each other: they run as
 * the same user of the same namespace on the same kernel, and none is protected from that. Unless
 * RONDO_HOST_ID or `apart` differ. */
rondo_result host_identity(int apart, unsigned char ret_identity[16]);
/* True if there may be processes of this host that have another identity although their user is the
 * same, so that only a network leads there. */
bool host_may_be_hidden(void);
/* Equal for processes on the same kernel: they share its cores, whatever else separates them. */
uint64_t host_machine(void);
/* The processors that the calling thread may run on, as bits; none: it has only higher ones. */
void host_cpus(uint64_t ret_cpus[16]);

#endif
