/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ipc.h - memfds that another process hands over by their number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The 64 bytes of a handle hold this. The number in the name of the file tells whether the
 * descriptor is still it. */
struct ipc_handle {
    char magic[8];
    int32_t process;
    int32_t fd;
    int32_t device;
    int32_t kind;
    uint64_t id;
    uint64_t size;
};

enum { IPC_MEMORY = 1, IPC_EVENT = 2 };

/* Fills the bytes (64 of them, also the padding) of a handle for a file of this process. */
void ipc_export(void *handle, const struct ipc_handle *what);

/* Reads a handle; false: it is none of the kind. */
bool ipc_read(const void *handle, int kind, struct ipc_handle *ret_what);

/* Opens the file of another process; -1 when it is gone. */
int ipc_open(const struct ipc_handle *what);
