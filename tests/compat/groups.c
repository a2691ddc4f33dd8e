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

/* As in training: a reduce-scatter and an all-gather for each of many tensors of all sizes. */
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

bool groups_are_not_simulated(struct client *client)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    ncclComm_t comm = NULL;
    bool fine;

    ncclGroupStart();
    ncclAllReduce(&info, &info, 1, ncclInt8, ncclSum, client->comm, client->stream);
    ncclCommInitRank(&comm, 2, client->id, 0);
    fine = client_refused(client, ncclGroupSimulateEnd(&info), ncclInvalidUsage,
                          "no estimate to give");
    if (fine && comm)
        fine = client_say(client, "there is a communicator that was never made");
    return fine && sums_up(client, client->comm);
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
