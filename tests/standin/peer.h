/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - another process that uses the driver (the program standin_peer), and what it is asked.
 */
#pragma once

#include <cuda.h>
#include <sys/types.h>

enum peer_verb {
    PEER_OPEN,        /* the handle in `memory`; says the address */
    PEER_CLOSE,       /* what is at `address` */
    PEER_READ,        /* says the word there */
    PEER_WRITE,       /* `value` */
    PEER_WAIT_VALUE,  /* its stream waits for the word to become `value` */
    PEER_QUERY,       /* its stream: done? */
    PEER_SYNCHRONIZE, /* its stream */
    PEER_OPEN_EVENT,  /* the handle in `event` */
    PEER_WAIT_EVENT,  /* its stream waits for it */
    PEER_RECORD,      /* its stream records it */
    PEER_IMPORT,      /* the descriptor that comes along: 2 MiB; says the address */
    PEER_UNMAP,       /* what is at `address` */
    PEER_EXPORT,      /* new memory of 64 bytes; says the handle */
    PEER_END,
};

struct peer_request {
    enum peer_verb verb;
    CUdeviceptr address;
    unsigned value;
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

struct peer_answer {
    CUresult result;
    CUdeviceptr address;
    unsigned value;
    CUipcMemHandle memory;
};

struct peer {
    pid_t process;
    int socket;
};

/* Starts it; CUDA_STANDIN_PEER_PROGRAM says where it is. False when it can't be started. */
int peer_start(struct peer *peer);

/* Ends it. Its exit status, 0 if all is well. */
int peer_end(struct peer *peer);

/* Asks; fd -1: none. A result of CUDA_ERROR_UNKNOWN if it is gone. */
struct peer_answer peer_ask(struct peer *peer, const struct peer_request *request, int fd);
