/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h - a world of clients of NCCL: ranks as threads or processes, with memory of the host or
 * of the device. Nothing here knows Rondo, and nothing here uses Criterion.
 *
 * CLIENT_MEMORY=device in the environment takes memory and streams from the CUDA driver, which is
 * loaded when it is wanted, so one program serves machines with and without.
 */
#ifndef RONDO_TESTS_COMPAT_CLIENT_H
#define RONDO_TESTS_COMPAT_CLIENT_H

#include "nccl_header.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CLIENT_RANKS = 16, CLIENT_SAID = 512 };

struct client {
    ncclUniqueId id;
    ncclComm_t comm; /* NULL: the body joins by itself */
    cudaStream_t stream;
    int rank, size;
    void *argument; /* of the body; shared between processes if the caller made it so */
    char *said;     /* what went wrong, CLIENT_SAID bytes */
};

/* True if all is well. */
typedef bool (*client_body)(struct client *client);

struct client_world {
    int size;
    bool processes; /* or threads */
    bool apart;     /* do not join before the body */
    int leaves;     /* a rank that ends its process by itself, counted from 1; 0: none */
    int leaves_too; /* another one */
    void *argument;
};

/* "" if the body was true everywhere, else what the first rank that failed said. */
const char *client_run(const struct client_world *world, client_body body);
/* All ranks in the calling thread: `size` communicators, made as a group or all at once. */
const char *client_run_alone(int size, bool all_at_once, bool (*body)(struct client *clients));
/* Zeroed memory that forked processes share. */
void *client_share(size_t bytes);

/* False, with the sentence, unless there is one already. */
bool client_say(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* True if it is ncclSuccess. If not, says what failed, and NCCL's last error. */
bool client_ok(struct client *client, ncclResult_t result, const char *what);
/* True if it is that error, with these words in the last error. */
bool client_refused(struct client *client, ncclResult_t result, ncclResult_t expected,
                    const char *words);
/* Returns what the communicator says when it is no longer in progress. */
ncclResult_t client_poll(ncclComm_t comm);
void client_sleep(int milliseconds);

/* ---- Memory: of the device, or the host ------------------------------------------------------ */

bool client_on_device(void);
/* True when that thread waits, maybe in the driver; false: it has ended. */
bool client_await_wait(pid_t thread);
/* Make the device current in this thread; a stream of this thread's (NULL on the host). */
cudaStream_t client_open_stream(void);
void client_close_stream(cudaStream_t stream);
void *client_alloc(size_t bytes);
void client_free(void *memory);
void client_write(void *to, const void *from, size_t bytes);
void client_read(void *to, const void *from, size_t bytes);
/* Until all that is queued is done. */
bool client_wait(cudaStream_t stream);
/* Record what `enqueue` does on the stream in a graph, and launch that `times` times. */
bool client_replay(struct client *client, client_body enqueue, int times);

/* ---- Values: what a rank contributes, exact in every type ------------------------------------ */

size_t value_bytes(ncclDataType_t type);
/* Element `index` of what `rank` gives to `op`. */
double value_of(int rank, size_t index, ncclRedOp_t op);
double value_reduced(int size, size_t index, ncclRedOp_t op);
/* Small integers, and halves and quarters of them. Returns the bits. */
void value_store(ncclDataType_t type, void *at, double value);
/* Fill `count` elements with rank's, from `first` on. */
void value_fill(ncclDataType_t type, void *host, size_t first, size_t count, int rank,
                ncclRedOp_t op);

#endif
