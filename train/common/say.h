/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say.h - the sentence of an error of the training program, kept until main() prints it.
 *
 * What the library refused has its sentence in rondo_ddp_last_error() or rondo_last_error(); one
 * that is said here comes before those.
 */
#ifndef RONDO_TRAIN_COMMON_SAY_H
#define RONDO_TRAIN_COMMON_SAY_H

#include "rondo/rondo.h"

rondo_result say(rondo_result result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
rondo_result say_memory(void);
/* After a call on `comm` that returned `result`. */
rondo_result say_comm(rondo_result result, const rondo_comm *comm);
/* After a call of ddp.h or train.h that returned `result`. */
rondo_result say_ddp(rondo_result result);
const char *said(void);

#endif
