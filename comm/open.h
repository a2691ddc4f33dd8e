/* SPDX-License-Identifier: BSD-3-Clause */
/* open.h - the steps by which a communicator is made, whatever way its ranks meet. */
#ifndef RONDO_COMM_OPEN_H
#define RONDO_COMM_OPEN_H

#include "comm/state/comm.h"

/* ---- settings.c ------------------------------------------------------------------------------ */

rondo_result comm_read_settings(const rondo_config *config, int size,
                                struct comm_settings *ret_settings);
/* Returns the device that the configuration asks for, or that of the calling thread where it asks
 * for none of them; negative: none. */
int comm_choose_device(const rondo_config *config);
/* The job meets over a network, so its ranks may be on several hosts. */
void comm_settings_expect_hosts(struct comm_settings *settings);
/* Equal on ranks whose settings fit together; with the settings in words. */
uint32_t comm_settings_hash(const struct comm_settings *settings, char ret_text[ENDPOINT_SETTINGS]);
/* The first setting that differs between two such texts, as each has it; "": none within them. */
void comm_settings_compare(const char one[ENDPOINT_SETTINGS], const char other[ENDPOINT_SETTINGS],
                           char ret_one[ENDPOINT_SETTINGS], char ret_other[ENDPOINT_SETTINGS]);

/* The endpoint of a rank begins with these; an empty one means that the rank could not prepare. */
enum { ENDPOINT_MAGIC = 0x526f6e64, ENDPOINT_VERSION = 12 };

/* ---- open.c: making one ---------------------------------------------------------------------- */

/* Step 1: memory and this rank's endpoint. Step 2: with everybody's endpoints, in rank order, the
 * links. */
rondo_result comm_prepare(int size, int rank, const struct comm_settings *settings,
                          rondo_comm **ret_comm);
rondo_result comm_connect(rondo_comm *comm, const struct endpoint *endpoints);
/* The part of it that says whether an endpoint that came is fit for the own one. */
rondo_result comm_check_endpoint(const rondo_comm *comm, int rank);
/* nearby.c: `comm->groups`, from the setting, or, with `comm->order`, from hosts and NUMA nodes on
 * everybody's endpoints. */
rondo_result comm_find_groups(rondo_comm *comm);
/* order.c: where this rank sits, for its endpoint; `comm->order`, from the places on everybody's
 * endpoints, where rank r is on host hosts[r] (any numbers). */
void comm_find_place(struct endpoint *endpoint);
rondo_result comm_find_order(rondo_comm *comm, const int *hosts);
/* Step 3, collective: measure the links (measure.c). Everybody has the same costs afterwards. */
rondo_result comm_measure(rondo_comm *comm);
/* Part of it: between groups of ranks, if there are any; only some ranks do something. */
rondo_result comm_measure_groups(rondo_comm *comm, struct group_costs *ret_costs);
/* The end of it, also where costs are known: returns when all ranks are connected. Before that no
 * rank may close, others may still be looking at what it shows. */
rondo_result comm_assemble(rondo_comm *comm);
/* Frees what any of the steps made; accepts NULL. */
void comm_free(rondo_comm *comm);

#endif
