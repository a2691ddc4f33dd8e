/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - an algorithm out of a file of plans (plan/file/, plan/msccl/), proved before anybody
 * runs it.
 *
 * It has one form, of one collective over one number of ranks and with one root. What it promises
 * is what the verifier has proved of it, and without that there is no such algorithm: so whatever
 * is in a file, a run of it stays within the buffers and comes to its end.
 */
#ifndef RONDO_COLLECTIVES_FILE_FILE_H
#define RONDO_COLLECTIVES_FILE_FILE_H

#include "collectives/algorithm.h"
#include "plan/file/file.h"
#include "plan/verify/verify.h"

/* Read a file of plans, or an algorithm of MSCCL, which is XML. RONDO_ERROR_INVALID or
 * RONDO_ERROR_UNSUPPORTED with a sentence that names the place. */
rondo_result file_read(const char *path, struct plan_file **ret_file);

/*
 * Prove the plans of a file, where the collective works in place also in place; *ret_promises are
 * those that they keep. RONDO_ERROR_INVALID with a sentence that names rank, step and line;
 * `ret_report` then has the place.
 */
rondo_result file_prove(const struct plan_file *file, const char *path, int slots,
                        struct verify_report *ret_report, unsigned *ret_promises);

/* Prove a file, and add it as file_algorithm() does. Takes the file, also if it fails. */
rondo_result file_algorithm_of(struct plan_file *file, const char *path,
                               const struct algorithm **ret_algorithm);
/*
 * Read and prove a file. *ret_algorithm, whose name is "file:", the plan's and a hash of the text,
 * is found by that name (algorithm_find()) as long as the process lives.
 */
rondo_result file_algorithm(const char *path, const struct algorithm **ret_algorithm);

#endif
