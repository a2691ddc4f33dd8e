/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - whether another process of this host lives: by a pidfd, or where the system gives none
 * (Linux before 5.3, filters of containers) by its number and the moment of its start in /proc.
 */
#ifndef RONDO_TRANSPORT_MEMORY_WATCH_H
#define RONDO_TRANSPORT_MEMORY_WATCH_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>

struct watch {
    int pid;
    int pidfd;        /* -1: the system gives none */
    uint64_t started; /* base/process.h */
};

#define WATCH_NONE ((struct watch){.pidfd = -1})

/* From now on it is known whether the process lives. RONDO_ERROR_PEER: it has ended already. After
 * an error *ret_watch can be closed, too. */
rondo_result watch_open(int pid, struct watch *ret_watch);
void watch_close(struct watch *watch);
/* A system call, or a few. */
bool watch_ended(const struct watch *watch);
/* RONDO_ERROR_PEER with a sentence. */
rondo_result watch_say_ended(int pid);

#endif
