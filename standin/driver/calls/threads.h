/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.h - blocks of more than one thread.
 */
#pragma once

#include "standin/driver/module.h"

/* Runs the block at `place` (whose thread_index does not matter) on the thread that calls: its
 * threads one after another, each until it ends or comes to a barrier. */
void threads_run(const struct CUfunc_st *function, const struct module_place *place,
                 void **parameters);
