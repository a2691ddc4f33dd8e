/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msccl.h - algorithms of MSCCL, which are XML, as plans: docs/plan_format.md says which of them.
 *
 * A thread block of MSCCL talks to one peer and waits for steps of others; a rank's plan here is
 * one program. Its order is one in which the blocks of all ranks could have run with two slots per
 * link, so it waits for nothing that comes later.
 */
#ifndef RONDO_PLAN_MSCCL_MSCCL_H
#define RONDO_PLAN_MSCCL_MSCCL_H

#include "plan/file/file.h"

/* True if the text is XML, and so none of our files of plans. */
bool msccl_is_xml(const char *text, size_t length);
/* RONDO_ERROR_INVALID or RONDO_ERROR_UNSUPPORTED: a sentence names line, GPU, block and step. */
rondo_result msccl_parse(const char *path, const char *text, size_t length,
                         struct plan_file **ret_file);

#endif
