/* SPDX-License-Identifier: BSD-3-Clause */
/* forked.c - a child of a rank, as data loaders fork: NCCL's functions refuse it in sentences, it
 * ends without waiting for anything, and its parent's calls go on. */
#include "bodies.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1000, PATIENCE = 100 /* seconds */ };

static bool refuses(struct client *client, ncclResult_t result, const char *what)
{
    return (result != ncclSuccess && strstr(ncclGetLastError(client->comm), "forked")) ||
           client_say(client, "in a child, %s returned %d: %s", what, (int)result,
                      ncclGetLastError(client->comm));
}

static bool calls_are_refused(struct client *client, float *memory)
{
    ncclComm_t made = NULL;
    ncclResult_t state = ncclSuccess;
    ncclRedOp_t op;
    void *handle = NULL;
    ncclWindow_t window = NULL;
    void *window_at = (void *)(uintptr_t)(1 << 20); /* a window begins on a page */
    float scalar = 2;

    return refuses(client,
                   ncclAllReduce(memory, memory + COUNT, COUNT, ncclFloat32, ncclSum, client->comm,
                                 client->stream),
                   "ncclAllReduce") &&
           client_ok(client, ncclGroupStart(), "ncclGroupStart") &&
           (ncclSend(memory, COUNT, ncclFloat32, 0, client->comm, client->stream), true) &&
           refuses(client, ncclGroupEnd(), "ncclGroupEnd") &&
           refuses(client, ncclCommSplit(client->comm, 0, 0, &made, NULL), "ncclCommSplit") &&
           client_ok(client, ncclCommGetAsyncError(client->comm, &state), "asking") &&
           refuses(client, state, "ncclCommGetAsyncError") &&
           refuses(client,
                   ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate,
                                            client->comm),
                   "ncclRedOpCreatePreMulSum") &&
           refuses(client, ncclCommRegister(client->comm, memory, COUNT, &handle),
                   "ncclCommRegister") &&
           refuses(client, ncclCommWindowRegister(client->comm, window_at, COUNT, &window, 0),
                   "ncclCommWindowRegister");
}

static bool be_child(struct client *client, float *memory)
{
    alarm(PATIENCE);
    return calls_are_refused(client, memory) &&
           client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort in a child");
}

bool forked_child_is_refused(struct client *client)
{
    struct matrix_call call = {.type = ncclFloat32, .op = ncclSum, .count = COUNT};
    float *memory = client_alloc(2 * COUNT * sizeof(*memory));
    bool fine = matrix_prepare(client, &call) && matrix_enqueue(client, &call);
    pid_t child = fine ? fork() : -1;
    int status = 0;

    if (child == 0) /* exit() has a checker of leaks look for the threads of the parent */
        _exit(be_child(client, memory) ? 0 : 1);
    if (fine && (child < 0 || waitpid(child, &status, 0) != child || status))
        fine = client_say(client, "the child ended with status %x", status);
    fine = fine && client_wait(client->stream) && matrix_check(client, &call);
    matrix_done(&call);
    call = (struct matrix_call){.type = ncclFloat32, .op = ncclSum, .count = COUNT};
    fine = fine && matrix_prepare(client, &call) && matrix_enqueue(client, &call) &&
           client_wait(client->stream) && matrix_check(client, &call);
    matrix_done(&call);
    client_free(memory);
    return fine;
}
