/* SPDX-License-Identifier: BSD-3-Clause */
/* recorded.h - the recorded machines of fixtures/ for the tests of this folder. */
#ifndef RONDO_TESTS_TOPOLOGY_RECORDED_H
#define RONDO_TESTS_TOPOLOGY_RECORDED_H

#include "topology/topology.h"

/* Opens fixtures/NAME.xml; the test ends if that fails. */
struct topology *recorded_open(const char *name);
/* The index of the device called so; the test ends if there is none. */
int recorded_device(const struct topology *topology, const char *name);

#endif
