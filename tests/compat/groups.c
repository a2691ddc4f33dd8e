/* SPDX-License-Identifier: BSD-3-Clause */
/* groups.c - groups as clients make them, and streams. */
#include "bodies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sums_up(struct client *client, ncclComm_t comm)
{
    struct client own = *client;
    struct matrix_call call = {.type = ncclFloat32, .op = ncclSum, .count = 333};
    bool fine = client_ok(client, ncclCommUserRank(comm, &own.rank), "ncclCommUserRank") &&
                client_ok(client, ncclCommCount(comm, &own.size), "ncclCommCount");

    own.comm = comm;
    fine = fine && matrix_prepare(&own, &call) && matrix_enqueue(&own, &call);
    fine = client_wait(own.stream) && fine && matrix_check(&own, &call);
    if (call.memory)
        matrix_done(&call);
    return fine;
}

/* Training makes such calls: a reduce-scatter and an all-gather for each of many tensors of all
 * sizes. */
bool groups_of_many_tensors(struct client *client)
{
    enum { TENSORS = 64 };
    struct matrix_call calls[TENSORS];
    bool fine = client_ok(client, ncclGroupStart(), "ncclGroupStart");

    for (int i = 0; i < TENSORS; i++) {
        calls[i] = (struct matrix_call){.collective = i % MATRIX_COLLECTIVES,
                                        .type = (ncclDataType_t)(i % ncclNumTypes),
                                        .op = ncclSum,
                                        .count = (size_t)(i * i),
                                        .in_place = i % 3 == 0};
        calls[i].in_place &= calls[i].collective != 5;
        fine = matrix_prepare(client, &calls[i]) && fine && matrix_enqueue(client, &calls[i]);
    }
    fine = client_ok(client, ncclGroupEnd(), "ncclGroupEnd") && fine && client_wait(client->stream);
    for (int i = 0; i < TENSORS; i++) {
        fine = fine && matrix_check(client, &calls[i]);
        matrix_done(&calls[i]);
    }
    return fine;
}

/* With everybody, this rank too, in an order in which ungrouped calls would wait for ever. */
static bool exchange(struct client *client, int *out, int *in)
{
    bool fine = true;

    for (int i = 0; i < client->size && fine; i++) {
        int peer = (client->rank + i) % client->size;

        fine =
            client_ok(client, ncclGroupStart(), "ncclGroupStart inside") &&
            client_ok(client,
                      ncclSend(out + peer, 1, ncclInt32, peer, client->comm, client->stream),
                      "ncclSend") &&
            client_ok(client, ncclRecv(in + peer, 1, ncclInt32, peer, client->comm, client->stream),
                      "ncclRecv") &&
            client_ok(client, ncclGroupEnd(), "ncclGroupEnd inside");
    }
    return fine;
}

bool groups_nest_and_exchange(struct client *client)
{
    size_t bytes = (size_t)client->size * sizeof(int);
    int *out = client_alloc(bytes);
    int *in = client_alloc(bytes);
    int host[CLIENT_RANKS];
    bool fine;

    for (int peer = 0; peer < client->size; peer++)
        host[peer] = 100 * client->rank + peer;
    client_write(out, host, bytes);
    fine = client_ok(client, ncclGroupStart(), "ncclGroupStart") && exchange(client, out, in) &&
           client_ok(client, ncclGroupEnd(), "ncclGroupEnd") && client_wait(client->stream);
    if (fine)
        client_read(host, in, bytes);
    for (int peer = 0; peer < client->size && fine; peer++)
        if (host[peer] != 100 * peer + client->rank)
            fine =
                client_say(client, "rank %d got %d from rank %d", client->rank, host[peer], peer);
    client_free(out);
    client_free(in);
    return fine;
}

bool groups_with_an_error_do_nothing(struct client *client)
{
    int *memory = client_alloc(4 * sizeof(int));
    const int before[4] = {1, 2, 3, 4};
    int after[4];
    bool fine;

    client_write(memory, before, sizeof(before));
    ncclGroupStart();
    fine = client_ok(
               client,
               ncclAllReduce(memory, memory, 4, ncclInt32, ncclSum, client->comm, client->stream),
               "the first call") &&
           client_refused(client,
                          ncclAllReduce(memory, memory, 4, (ncclDataType_t)77, ncclSum,
                                        client->comm, client->stream),
                          ncclInvalidArgument, "type number 77");
    fine = client_refused(client, ncclGroupEnd(), ncclInvalidArgument, "") && fine;
    client_wait(client->stream);
    client_read(after, memory, sizeof(after));
    if (fine && memcmp(before, after, sizeof(before)) != 0)
        fine = client_say(client, "a call of a group with an error was made");
    client_free(memory);
    return fine && sums_up(client, client->comm) &&
           client_refused(client, ncclGroupEnd(), ncclInvalidUsage, "no ncclGroupStart()");
}

/* A client that cleans up after an error may not know that its thread has a group open. */
bool groups_left_open_are_aborted(struct client *client)
{
    int *memory = client_alloc(sizeof(int));
    bool fine;

    ncclGroupStart();
    fine = client_ok(
               client,
               ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, client->comm, client->stream),
               "the call") &&
           client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort");
    client->comm = NULL;
    fine = client_refused(client, ncclGroupEnd(), ncclRemoteError, "aborted") && fine;
    client_wait(client->stream);
    client_free(memory);
    return fine;
}

/* A communicator that is made in the background does not take the group's calls along. */
bool groups_call_beside_a_split(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t parent = NULL, part = NULL;
    int *memory = client_alloc(sizeof(int)), one = 1, sum = 0;
    bool fine;

    config.blocking = 0;
    client_write(memory, &one, sizeof(one));
    fine = client_refused(client, ncclCommSplit(client->comm, 0, client->rank, &parent, &config),
                          ncclInProgress, "") &&
           client_ok(client, client_poll(parent), "the parent") &&
           client_ok(client, client_poll(client->comm), "its parent");
    ncclGroupStart();
    fine = fine &&
           client_ok(client, ncclCommSplit(parent, 0, client->rank, &part, NULL), "a split") &&
           client_ok(
               client,
               ncclAllReduce(memory, memory, 1, ncclInt32, ncclSum, client->comm, client->stream),
               "the call");
    fine = client_refused(client, ncclGroupEnd(), ncclInProgress, "") && fine &&
           client_ok(client, client_poll(part), "the part") &&
           client_ok(client, client_poll(parent), "the parent");
    client_wait(client->stream);
    client_read(&sum, memory, sizeof(sum));
    client_free(memory);
    if (fine && sum != client->size)
        fine = client_say(client, "the sum is %d", sum);
    return fine && client_ok(client, ncclCommDestroy(part), "ncclCommDestroy of the part") &&
           client_ok(client, ncclCommDestroy(parent), "ncclCommDestroy");
}

/* A group of one all_reduce, with a communicator to be made, simulated. */
static bool simulate(struct client *client, void *memory, size_t count, int calls, float *ret)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    ncclComm_t comm = NULL;
    bool fine = client_ok(client, ncclGroupStart(), "ncclGroupStart");

    for (int i = 0; i < calls; i++)
        fine = client_ok(client,
                         ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, client->comm,
                                       client->stream),
                         "a call to be simulated") &&
               fine;
    ncclCommInitRank(&comm, 2, client->id, 0);
    fine = fine && client_ok(client, ncclGroupSimulateEnd(&info), "ncclGroupSimulateEnd");
    *ret = info.estimatedTime;
    return fine && (!comm || client_say(client, "there is a communicator that was never made"));
}

/* Grows with the bytes, and with the calls; nothing was done. */
static bool times_are_right(struct client *client, const float *times)
{
    if (times[0] <= 0 || times[1] <= times[0] || times[2] <= times[1] ||
        times[3] < 2.99F * times[1] || times[3] > 3.01F * times[1])
        return client_say(client, "1 element %g us, 1 MiB %g, 16 MiB %g, 3 times 1 MiB %g",
                          (double)times[0], (double)times[1], (double)times[2], (double)times[3]);
    return true;
}

/* The groups are of one rank's alone, with calls that its peers never make. */
bool groups_are_simulated(struct client *client)
{
    enum { MIB = 1 << 18, MOST = 16 * MIB };
    float *memory = client_alloc(MOST * sizeof(float)), one = 1, after = 0, times[4], again;
    ncclSimInfo_t wrong = NCCL_SIM_INFO_INITIALIZER;
    bool fine;

    client_write(memory, &one, sizeof(one));
    fine = simulate(client, memory, 1, 1, &times[0]) &&
           simulate(client, memory, MIB, 1, &times[1]) &&
           simulate(client, memory, MOST, 1, &times[2]) &&
           simulate(client, memory, MIB, 3, &times[3]) && times_are_right(client, times);
    if (client->rank == 0)
        fine = fine && simulate(client, memory, MIB, 1, &again) &&
               (again == times[1] || client_say(client, "it was %g us", (double)times[1]));
    client_wait(client->stream);
    client_read(&after, memory, sizeof(after));
    if (fine && after != one)
        fine = client_say(client, "a call was made: %g", (double)after);
    client_free(memory);
    wrong.magic = 1;
    ncclGroupStart();
    fine = fine &&
           client_refused(client, ncclGroupSimulateEnd(&wrong), ncclInvalidArgument,
                          "NCCL_SIM_INFO_INITIALIZER") &&
           client_refused(client, ncclGroupEnd(), ncclInvalidUsage, "no ncclGroupStart()") &&
           client_refused(client, ncclGroupSimulateEnd(&wrong), ncclInvalidUsage,
                          "no ncclGroupStart()");
    return fine && sums_up(client, client->comm);
}

/* Every rank is told the same. */
bool groups_are_simulated_alike(struct client *client)
{
    float *memory = client_alloc((size_t)client->size * 1000 * sizeof(float)), own = 0, all[64];
    bool fine = simulate(client, memory, 1000, 2, &own);

    client_write(memory, &own, sizeof(own));
    fine =
        fine &&
        client_ok(client,
                  ncclAllGather(memory, memory + 64, 1, ncclFloat32, client->comm, client->stream),
                  "ncclAllGather") &&
        client_wait(client->stream);
    client_read(all, memory + 64, (size_t)client->size * sizeof(float));
    for (int rank = 0; rank < client->size && fine; rank++)
        if (all[rank] != own)
            fine = client_say(client, "rank %d is told %g us", rank, (double)all[rank]);
    client_free(memory);
    return fine;
}

/* All ranks by one thread: each call of a group for each rank in turn. */
bool groups_alone(struct client *clients)
{
    struct matrix_call calls[MATRIX_COLLECTIVES][CLIENT_RANKS];
    int size = clients[0].size;
    bool fine = client_ok(clients, ncclGroupStart(), "ncclGroupStart");

    for (int c = 0; c < MATRIX_COLLECTIVES; c++)
        for (int rank = 0; rank < size; rank++) {
            calls[c][rank] = (struct matrix_call){
                .collective = c, .type = ncclBfloat16, .op = ncclSum, .count = 77, .root = 1};
            fine = matrix_prepare(&clients[rank], &calls[c][rank]) && fine &&
                   matrix_enqueue(&clients[rank], &calls[c][rank]);
        }
    fine = client_ok(clients, ncclGroupEnd(), "ncclGroupEnd") && fine;
    for (int rank = 0; rank < size; rank++)
        fine = client_wait(clients[rank].stream) && fine;
    for (int c = 0; c < MATRIX_COLLECTIVES; c++)
        for (int rank = 0; rank < size; rank++) {
            fine = fine && matrix_check(&clients[rank], &calls[c][rank]);
            matrix_done(&calls[c][rank]);
        }
    return fine;
}

static bool sum_in_parts(struct client *clients, ncclComm_t *parts)
{
    struct matrix_call calls[CLIENT_RANKS];
    int size = clients[0].size;
    bool fine = true;

    ncclGroupStart();
    for (int rank = 0; rank < size; rank++) {
        struct client part = clients[rank];

        calls[rank] = (struct matrix_call){.type = ncclInt64, .op = ncclMax, .count = 5};
        part.comm = parts[rank];
        part.rank = rank / 2;
        part.size = (size + 1 - rank % 2) / 2;
        fine = matrix_prepare(&part, &calls[rank]) && matrix_enqueue(&part, &calls[rank]) && fine;
    }
    fine = client_ok(clients, ncclGroupEnd(), "ncclGroupEnd of sums") && fine;
    for (int rank = 0; rank < size; rank++) {
        struct client part = clients[rank];

        part.rank = rank / 2;
        part.size = (size + 1 - rank % 2) / 2;
        fine = client_wait(part.stream) && fine && matrix_check(&part, &calls[rank]);
        matrix_done(&calls[rank]);
    }
    return fine;
}

bool groups_split_alone(struct client *clients)
{
    ncclComm_t parts[CLIENT_RANKS] = {0};
    int size = clients[0].size;
    bool fine = true;

    ncclGroupStart();
    for (int rank = 0; rank < size; rank++)
        fine = client_ok(clients,
                         ncclCommSplit(clients[rank].comm, rank % 2, rank, &parts[rank], NULL),
                         "ncclCommSplit in a group") &&
               fine;
    fine = client_ok(clients, ncclGroupEnd(), "ncclGroupEnd of splits") && fine;
    fine = fine && sum_in_parts(clients, parts);
    for (int rank = 0; rank < size; rank++)
        client_ok(clients, ncclCommDestroy(parts[rank]), "ncclCommDestroy of a part");
    return fine;
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* Calls on one communicator are in the order in which they were made, whatever their streams. */
bool streams_share_a_communicator(struct client *client)
{
    enum { CALLS = 20 };
    struct client other = *client;
    struct matrix_call calls[CALLS];
    bool fine = true;

    other.stream = client_open_stream();
    for (int i = 0; i < CALLS; i++) {
        calls[i] = (struct matrix_call){
            .collective = i % MATRIX_COLLECTIVES, .type = ncclUint8, .count = 4000};
        matrix_prepare(client, &calls[i]);
        fine = fine && matrix_enqueue(i % 2 ? &other : client, &calls[i]);
    }
    fine = client_wait(client->stream) && client_wait(other.stream) && fine;
    for (int i = 0; i < CALLS; i++) {
        fine = fine && matrix_check(client, &calls[i]);
        matrix_done(&calls[i]);
    }
    client_close_stream(other.stream);
    return fine;
}

static struct matrix_call *to_capture(struct client *client)
{
    return client->argument;
}

static bool enqueue_three(struct client *client)
{
    struct matrix_call *calls = to_capture(client);
    bool fine = matrix_enqueue(client, &calls[0]);

    ncclGroupStart();
    fine = fine && matrix_enqueue(client, &calls[1]) && matrix_enqueue(client, &calls[2]);
    return client_ok(client, ncclGroupEnd(), "ncclGroupEnd in a capture") && fine;
}

/* Launched again and again, with new input at the end. */
bool streams_are_captured(struct client *client)
{
    struct client own = *client;
    struct matrix_call calls[3];
    bool fine = true;

    own.argument = calls;
    for (int i = 0; i < 3; i++) {
        calls[i] = (struct matrix_call){
            .collective = 2 * i, .type = ncclFloat16, .op = ncclSum, .count = 500, .root = 1};
        fine = matrix_prepare(&own, &calls[i]) && fine;
    }
    fine = fine && client_replay(&own, enqueue_three, 4);
    for (int i = 0; i < 3; i++) {
        fine = fine && matrix_check(&own, &calls[i]);
        matrix_done(&calls[i]);
    }
    return fine && sums_up(client, client->comm);
}
