/* SPDX-License-Identifier: BSD-3-Clause */
/* rest.c - operations with a scalar, questions, configurations, memory, and mistakes. */
#include "bodies.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Operations with a scalar ---------------------------------------------------------------- */

enum { COUNT = 100 };

/* The sum over ranks of (rank + 1 + more) times the value. */
static bool check_scaled(struct client *client, const void *output, ncclDataType_t type, int more)
{
    char got[COUNT * 8], wanted[COUNT * 8];

    client_read(got, output, COUNT * value_bytes(type));
    for (size_t i = 0; i < COUNT; i++) {
        double sum = 0;

        for (int rank = 0; rank < client->size; rank++)
            sum += (rank + 1 + more) * value_of(rank, i, ncclSum);
        value_store(type, wanted + i * value_bytes(type), sum);
    }
    return memcmp(got, wanted, COUNT * value_bytes(type)) == 0 ||
           client_say(client, "a wrong scaled sum of type %d, with %d more", (int)type, more);
}

static bool sum_scaled(struct client *client, ncclDataType_t type, ncclRedOp_t op, int more)
{
    char host[COUNT * 8];
    char *memory = client_alloc(2 * sizeof(host));
    bool fine;

    value_fill(type, host, 0, COUNT, client->rank, ncclSum);
    client_write(memory, host, sizeof(host));
    fine = client_ok(client,
                     ncclAllReduce(memory, memory + sizeof(host), COUNT, type, op, client->comm,
                                   client->stream),
                     "ncclAllReduce with a scalar") &&
           client_wait(client->stream) && check_scaled(client, memory + sizeof(host), type, more);
    client_free(memory);
    return fine;
}

static bool scale_type(struct client *client, ncclDataType_t type)
{
    char scalar[8];
    ncclRedOp_t op, second;
    bool fine;

    value_store(type, scalar, client->rank + 1);
    fine = client_ok(
        client, ncclRedOpCreatePreMulSum(&op, scalar, type, ncclScalarHostImmediate, client->comm),
        "ncclRedOpCreatePreMulSum");
    value_store(type, scalar, client->rank + 3);
    fine = fine && client_ok(client,
                             ncclRedOpCreatePreMulSum(&second, scalar, type,
                                                      ncclScalarHostImmediate, client->comm),
                             "ncclRedOpCreatePreMulSum, the second");
    memset(scalar, 0xff, sizeof(scalar));
    return fine && (op >= ncclNumOps || client_say(client, "the operation is %d", (int)op)) &&
           sum_scaled(client, type, op, 0) && sum_scaled(client, type, second, 2) &&
           client_ok(client, ncclRedOpDestroy(op, client->comm), "ncclRedOpDestroy") &&
           client_refused(client, ncclRedOpDestroy(op, client->comm), ncclInvalidArgument,
                          "no operation") &&
           sum_scaled(client, type, second, 2) &&
           client_ok(client, ncclRedOpDestroy(second, client->comm), "ncclRedOpDestroy");
}

bool rest_scaled_sums(struct client *client)
{
    static const ncclDataType_t types[] = {ncclInt8,    ncclInt32,   ncclUint64,  ncclFloat16,
                                           ncclFloat32, ncclFloat64, ncclBfloat16};
    ncclRedOp_t op = ncclSum;
    float one = 1;
    int value = 0;
    bool fine = true;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && fine; i++)
        fine = scale_type(client, types[i]);
    return fine &&
           client_ok(client,
                     ncclRedOpCreatePreMulSum(&op, &one, ncclFloat32, ncclScalarHostImmediate,
                                              client->comm),
                     "ncclRedOpCreatePreMulSum") &&
           client_refused(
               client,
               ncclAllReduce(&value, &value, 1, ncclInt32, op, client->comm, client->stream),
               ncclInvalidArgument, "was made for type") &&
           client_ok(client, ncclRedOpDestroy(op, client->comm), "ncclRedOpDestroy");
}

/* Each call reads the scalar, when the operation is made nobody does. */
bool rest_device_scalars(struct client *client)
{
    float scalar = 100;
    void *memory = client_alloc(sizeof(scalar));
    ncclRedOp_t op;
    bool fine = client_ok(
        client, ncclRedOpCreatePreMulSum(&op, memory, ncclFloat32, ncclScalarDevice, client->comm),
        "ncclRedOpCreatePreMulSum");

    for (int more = 0; more < 3 && fine; more++) {
        scalar = (float)(client->rank + 1 + more);
        client_write(memory, &scalar, sizeof(scalar));
        fine = sum_scaled(client, ncclFloat32, op, more);
    }
    client_free(memory);
    return fine && client_ok(client, ncclRedOpDestroy(op, client->comm), "ncclRedOpDestroy");
}

/* ---- Questions ------------------------------------------------------------------------------- */

static void *ask_elsewhere(void *sentence)
{
    strncpy(sentence, ncclGetLastError(NULL), CLIENT_SAID - 1);
    return NULL;
}

bool rest_asks(struct client *client)
{
    char sentence[CLIENT_SAID] = "";
    int version = 0, size = 0, rank = -1, device = -2;
    pthread_t thread;
    bool fine = client_ok(client, ncclGetVersion(&version), "ncclGetVersion") &&
                client_ok(client, ncclCommCount(client->comm, &size), "ncclCommCount") &&
                client_ok(client, ncclCommUserRank(client->comm, &rank), "ncclCommUserRank") &&
                client_ok(client, ncclCommCuDevice(client->comm, &device), "ncclCommCuDevice");

    if (fine && (version != 22809 || size != client->size || rank != client->rank ||
                 device != (client_on_device() ? 0 : -1)))
        fine =
            client_say(client, "version %d, rank %d of %d, device %d", version, rank, size, device);
    for (int result = 0; result <= ncclNumResults && fine; result++)
        fine = ncclGetErrorString((ncclResult_t)result)[0] ||
               client_say(client, "no words for result %d", result);
    /* a watchdog asks for the error of another thread */
    fine = fine &&
           client_refused(client, ncclCommCount(NULL, &size), ncclInvalidArgument, "ncclCommCount");
    pthread_create(&thread, NULL, ask_elsewhere, sentence);
    pthread_join(thread, NULL);
    return fine && (strstr(sentence, "communicator is NULL") ||
                    client_say(client, "another thread is told: %s", sentence));
}

/* ---- Configurations -------------------------------------------------------------------------- */

static bool join(struct client *client, const ncclUniqueId *id, ncclConfig_t *config)
{
    ncclComm_t comm;
    bool fine = client_ok(
        client, ncclCommInitRankConfig(&comm, client->size, *id, client->rank, config), "joining");

    return fine && sums_up(client, comm) &&
           client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy");
}

/* Structs of older and newer headers; `argument` has an id for each. */
bool rest_configurations(struct client *client)
{
    ncclUniqueId *ids = client->argument;
    struct {
        ncclConfig_t known;
        int unknown[64];
    } newer = {.known = NCCL_CONFIG_INITIALIZER};
    ncclConfig_t older = NCCL_CONFIG_INITIALIZER;

    newer.known.size = sizeof(newer);
    memset(newer.unknown, 0x5a, sizeof(newer.unknown));
    memset((char *)&older + 20, 0x5a, sizeof(older) - 20);
    older.size = 20; /* up to `blocking` */
    return join(client, &ids[0], &newer.known) && join(client, &ids[1], &older) &&
           join(client, &ids[2], NULL) &&
           client_ok(client,
                     ncclCommInitRankScalable(&client->comm, client->size, client->rank, 2, &ids[3],
                                              NULL),
                     "ncclCommInitRankScalable") &&
           sums_up(client, client->comm);
}

static bool is_refused(struct client *client, ncclConfig_t *config, const char *words)
{
    ncclComm_t comm;

    return client_refused(client,
                          ncclCommInitRankConfig(&comm, client->size, client->id, 0, config),
                          ncclInvalidArgument, words);
}

bool rest_wrong_configurations(struct client *client)
{
    ncclConfig_t foreign = NCCL_CONFIG_INITIALIZER;
    ncclConfig_t wrong = NCCL_CONFIG_INITIALIZER;

    foreign.magic = 1;
    wrong.blocking = 7;
    return is_refused(client, &foreign, "NCCL_CONFIG_INITIALIZER") &&
           is_refused(client, &wrong, "blocking = 7");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static bool reduce_in(struct client *client, char *memory)
{
    int one[64], sum[64];

    for (int i = 0; i < 64; i++)
        one[i] = client->rank + i;
    client_write(memory, one, sizeof(one));
    if (!client_ok(
            client,
            ncclAllReduce(memory, memory, 64, ncclInt32, ncclMax, client->comm, client->stream),
            "ncclAllReduce in such memory") ||
        !client_wait(client->stream))
        return false;
    client_read(sum, memory, sizeof(sum));
    for (int i = 0; i < 64; i++)
        if (sum[i] != client->size - 1 + i)
            return client_say(client, "a wrong result in such memory");
    return true;
}

bool rest_memory(struct client *client)
{
    const size_t page = 4096;
    char *own = client_alloc(4 * page);
    char *aligned = (char *)(((uintptr_t)own + page - 1) / page * page);
    void *given = NULL;
    void *handles[2] = {NULL, NULL};
    bool fine =
        client_ok(client, ncclMemAlloc(&given, 1000), "ncclMemAlloc") && reduce_in(client, given) &&
        client_ok(client, ncclCommRegister(client->comm, aligned, page, &handles[0]),
                  "ncclCommRegister of a page") &&
        client_ok(client, ncclCommRegister(client->comm, aligned + page + 4, 300, &handles[1]),
                  "ncclCommRegister of less than a page");

    fine = fine && reduce_in(client, aligned) && reduce_in(client, aligned + page + 4);
    for (int i = 0; i < 2; i++)
        fine = fine && client_ok(client, ncclCommDeregister(client->comm, handles[i]),
                                 "ncclCommDeregister");
    fine = fine &&
           client_refused(client, ncclCommDeregister(client->comm, handles), ncclInvalidArgument,
                          "no such handle") &&
           client_ok(client, ncclMemFree(given), "ncclMemFree") &&
           client_ok(client, ncclMemFree(NULL), "ncclMemFree of NULL");
    client_free(own);
    return fine;
}

/* A window over `memory`, on which calls go as on any; true as long as all is well. */
static bool use_window(struct client *client, void *memory, size_t bytes)
{
    ncclWindow_t window = NULL;
    void *handle = NULL, *found = NULL;

    return client_ok(client, ncclCommWindowRegister(client->comm, memory, bytes, &window, 1),
                     "ncclCommWindowRegister") &&
           (window || client_say(client, "the window is NULL")) &&
           client_ok(client, ncclWinGetUserPtr(client->comm, window, &found),
                     "ncclWinGetUserPtr") &&
           (found == memory || client_say(client, "the window is of %p, not %p", found, memory)) &&
           client_ok(client, ncclCommRegister(client->comm, memory, bytes, &handle),
                     "ncclCommRegister of a window's memory") &&
           reduce_in(client, memory) &&
           client_refused(client, ncclCommDeregister(client->comm, window), ncclInvalidArgument,
                          "no such handle") &&
           client_ok(client, ncclCommDeregister(client->comm, handle), "ncclCommDeregister") &&
           client_ok(client, ncclCommWindowDeregister(client->comm, window),
                     "ncclCommWindowDeregister") &&
           client_refused(client, ncclCommWindowDeregister(client->comm, window),
                          ncclInvalidArgument, "no such window") &&
           client_refused(client, ncclWinGetUserPtr(client->comm, window, &found),
                          ncclInvalidArgument, "no such window") &&
           reduce_in(client, memory);
}

bool rest_windows(struct client *client)
{
    enum { PAGE = 4096 };
    char *own = client_alloc(4 * PAGE);
    char *aligned = (char *)(((uintptr_t)own + PAGE - 1) / PAGE * PAGE);
    ncclWindow_t window = NULL, second = NULL;
    void *given = NULL;
    bool fine =
        client_ok(client, ncclMemAlloc(&given, 2 * PAGE), "ncclMemAlloc") &&
        use_window(client, given, 2 * PAGE) && use_window(client, aligned, PAGE) &&
        (client_on_device() ||
         client_refused(client, ncclCommWindowRegister(client->comm, aligned + 8, PAGE, &window, 0),
                        ncclInvalidArgument, "multiple of 4096")) &&
        client_refused(client, ncclCommWindowRegister(client->comm, NULL, PAGE, &window, 0),
                       ncclInvalidArgument, "needs memory") &&
        client_ok(client, ncclCommWindowDeregister(client->comm, NULL),
                  "ncclCommWindowDeregister of none") &&
        client_ok(client, ncclMemFree(given), "ncclMemFree") &&
        client_ok(client, ncclCommWindowRegister(client->comm, aligned, PAGE, &window, 0),
                  "ncclCommWindowRegister") &&
        client_ok(client, ncclCommWindowRegister(client->comm, aligned, PAGE, &second, 0),
                  "a second window over it") &&
        client_ok(client, ncclCommWindowDeregister(client->comm, window), "ending the first") &&
        reduce_in(client, aligned); /* the second ends with the communicator */

    client_free(own);
    return fine;
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static bool wrong_calls(struct client *client)
{
    ncclComm_t comm = client->comm;
    cudaStream_t stream = client->stream;
    int value = 0;

    return client_refused(client,
                          ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, NULL, stream),
                          ncclInvalidArgument, "ncclAllReduce: the communicator is NULL") &&
           client_refused(client,
                          ncclAllReduce(&value, &value, 1, ncclInt32, (ncclRedOp_t)9, comm, stream),
                          ncclInvalidArgument, "no operation 9") &&
           client_refused(client, ncclAllReduce(NULL, NULL, 1, ncclInt32, ncclSum, comm, stream),
                          ncclInvalidArgument, "NULL") &&
           client_refused(client, ncclBcast(&value, 1, ncclInt32, client->size, comm, stream),
                          ncclInvalidArgument, "the root is") &&
           client_refused(client, ncclSend(&value, 1, ncclInt32, -1, comm, stream),
                          ncclInvalidArgument, "the peer is");
}

bool rest_mistakes(struct client *client)
{
    ncclUniqueId noise;
    ncclComm_t comm = NULL;
    int self = client->rank;

    memset(&noise, 0x55, sizeof(noise));
    return wrong_calls(client) &&
           client_refused(client, ncclCommInitRank(&comm, 2, client->id, 2), ncclInvalidArgument,
                          "no rank 2 of 2") &&
           client_refused(client, ncclCommInitRank(&comm, 2, noise, 0), ncclInvalidArgument,
                          "id") &&
           client_refused(client, ncclCommSplit(client->comm, -5, 0, &comm, NULL),
                          ncclInvalidArgument, "the color is -5") &&
           client_refused(client, ncclCommShrink(client->comm, &self, 1, &comm, NULL, 9),
                          ncclInvalidArgument, "the flags are 9") &&
           sums_up(client, client->comm);
}

bool rest_what_is_not_offered(struct client *client)
{
    return client_refused(client, ncclSignal(0, 0, 0, 0, client->comm, client->stream),
                          ncclInvalidUsage, "ncclSignal: Rondo has no one-sided calls") &&
           client_refused(client, ncclCommSuspend(client->comm, 1), ncclInvalidUsage,
                          "ncclCommSuspend") &&
           sums_up(client, client->comm);
}
