/* SPDX-License-Identifier: BSD-3-Clause */
/* host.h - facts about where this process runs that decide
 * whether and how well it can share memory with another. */
#ifndef RONDO_COMM_RENDEZVOUS_HOST_H
#define RONDO_COMM_RENDEZVOUS_HOST_H

#include "rondo/rondo.h"

#include <stdint.h>

/* Equal for processes that see each other's process numbers
 * and run as the same user on the same kernel,
 * unless RONDO_HOST_ID or `apart` differ. */
rondo_result host_identity(int apart, unsigned char ret_identity[16]);
/* Equal for processes on the same kernel: they share its cores, whatever else separates them. */
uint64_t host_machine(void);
/* The processors that the calling thread may run on, as bits. */
void host_cpus(uint64_t ret_cpus[16]);
/* Cores' worth of processor time that the control group allows, rounded up; 0: no limit. */
int host_quota(void);

#endif
