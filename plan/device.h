/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - which plans a GPU can run. It has two executors, and what each asks of a plan, beside
 * what plan/verify proves, is checked here: by who is going to run it, and by `rondo verify
 * --device`, which proves all plans that either of them takes.
 *
 *     kernel        one kernel for the call (cuda/executor.h): every program has blocks of its own,
 *                   and messages travel in slots of the device's memory
 *     operations    one operation of a stream for each step (comm/gpu/steps.c): a mailbox for each
 *                   pair of ranks is all that there is for messages, on whatever channel they are,
 *                   so they carry no data
 */
#ifndef RONDO_PLAN_DEVICE_H
#define RONDO_PLAN_DEVICE_H

#include "plan/plan.h"

enum plan_device { PLAN_DEVICE_KERNEL, PLAN_DEVICE_OPERATIONS, PLAN_DEVICES };
enum { PLAN_DEVICE_OPERANDS = 64 }; /* sources of a step, and destinations */

/* Messages under way between two ranks before the sender waits, at the least. */
int plan_device_slots(enum plan_device device);
/* RONDO_ERROR_UNSUPPORTED with a sentence that says why the device cannot run it so. */
rondo_result plan_device_check(const struct plan *plan, enum plan_device device);
/* Rewrite the plan for the links that the device has, so that a proof is one of what runs there. */
void plan_device_join(struct plan *plan, enum plan_device device);

#endif
