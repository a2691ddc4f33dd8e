/* SPDX-License-Identifier: BSD-3-Clause */
/* write.h - plans as an algorithm of MSCCL, which is XML; plan/msccl/ reads such. */
#ifndef RONDO_CLI_MSCCL_WRITE_H
#define RONDO_CLI_MSCCL_WRITE_H

#include "plan/plan.h"

#include <stdio.h>

/* Write the plans of all ranks, which are right. RONDO_ERROR_UNSUPPORTED: they have a step that
 * MSCCL has no form of, and the sentence names it. */
rondo_result msccl_write(struct plan *const *plans, int size, FILE *to);

#endif
