/* SPDX-License-Identifier: BSD-3-Clause */
/* later.c - functions that came after the installed header: calls with options, teams, and those
 * that are there to say no. */
#ifdef HAVE_NCCL_H
#define NCCL_ABI_INSTALLED
#endif
#include "bodies.h"
#include "compat/nccl_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The function of that name, to call as whatever it is. */
static bool find(struct client *client, const char *name, void *function)
{
    *(void **)function = dlsym(RTLD_DEFAULT, name);
    return *(void **)function || client_say(client, "there is no %s", name);
}

/* ---- Calls with options ---------------------------------------------------------------------- */

enum { COUNT = 50, ROOM = CLIENT_RANKS * COUNT };
#define OPTIONS const ncclCollConfig_t *options
#define WHERE   ncclComm_t comm, cudaStream_t stream
typedef ncclResult_t reduces(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, WHERE,
                             OPTIONS);
typedef ncclResult_t reduces_to(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int,
                                WHERE, OPTIONS);
typedef ncclResult_t moves(const void *, void *, size_t, ncclDataType_t, WHERE, OPTIONS);
typedef ncclResult_t moves_to(const void *, void *, size_t, ncclDataType_t, int, WHERE, OPTIONS);

struct buffers {
    int *input, *output;
};

static ncclResult_t call(const struct client *client, const char *name, void *function,
                         const struct buffers *b, OPTIONS)
{
    ncclComm_t comm = client->comm;
    cudaStream_t stream = client->stream;
    union {
        void *at;
        reduces *reduces;
        reduces_to *reduces_to;
        moves *moves;
        moves_to *moves_to;
    } f = {.at = function};

    if (strstr(name, "AllReduce") || strstr(name, "ReduceScatter"))
        return f.reduces(b->input, b->output, COUNT, ncclInt32, ncclSum, comm, stream, options);
    if (strstr(name, "Reduce"))
        return f.reduces_to(b->input, b->output, COUNT, ncclInt32, ncclSum, 1, comm, stream,
                            options);
    if (strstr(name, "All"))
        return f.moves(b->input, b->output, COUNT, ncclInt32, comm, stream, options);
    return f.moves_to(b->input, b->output, COUNT, ncclInt32, 1, comm, stream, options);
}

/* Makes a call without options and with them: the same comes out. */
static bool call_both(struct client *client, const char *name, const struct buffers *b)
{
    ncclCollConfig_t options = {.size = sizeof(options),
                                .magic = NCCL_ABI_CONFIG_MAGIC,
                                .algSelection = "direct",
                                .forceAlgSelection = 1};
    static const int zero[ROOM];
    int plain[ROOM], with[ROOM];
    char longer[64];
    void *function;

    snprintf(longer, sizeof(longer), "%sConfig", name);
    if (!find(client, longer, &function))
        return false;
    for (int round = 0; round < 2; round++) {
        client_write(b->output, zero, sizeof(zero));
        if (!client_ok(client, call(client, name, function, b, round ? &options : NULL), longer) ||
            !client_wait(client->stream))
            return false;
        client_read(round ? with : plain, b->output, sizeof(zero));
    }
    if (memcmp(plain, with, sizeof(plain)) != 0)
        return client_say(client, "%s brings something else", longer);
    options.algSelection = "pigeon";
    return client_refused(client, call(client, name, function, b, &options), ncclInvalidUsage,
                          "no algorithm \"pigeon\"");
}

bool later_calls_take_options(struct client *client)
{
    static const char *const names[] = {"ncclAllReduce",     "ncclReduce",   "ncclBroadcast",
                                        "ncclAllGather",     "ncclAlltoAll", "ncclGather",
                                        "ncclReduceScatter", "ncclScatter"};
    struct buffers buffers = {client_alloc(ROOM * sizeof(int)), client_alloc(ROOM * sizeof(int))};
    ncclCollConfig_t foreign = {.size = sizeof(foreign), .magic = 1};
    int values[ROOM];
    void *function;
    bool fine = true;

    for (int i = 0; i < ROOM; i++)
        values[i] = 100 * client->rank + i;
    client_write(buffers.input, values, sizeof(values));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && fine; i++)
        fine = call_both(client, names[i], &buffers);
    fine = fine && find(client, "ncclAllReduceConfig", &function) &&
           client_refused(client, call(client, "ncclAllReduce", function, &buffers, &foreign),
                          ncclInvalidArgument, "NCCL_COLLCONFIG_INITIALIZER") &&
           sums_up(client, client->comm);
    client_free(buffers.input);
    client_free(buffers.output);
    return fine;
}

/* ---- Teams and properties -------------------------------------------------------------------- */

static bool is_team(struct client *client, const char *name, int size, int rank)
{
    ncclTeam_t (*of)(ncclComm_t comm);
    ncclTeam_t team;

    if (!find(client, name, (void *)&of))
        return false;
    team = of(client->comm);
    return (team.nRanks == size && team.rank == rank && team.stride == 1) ||
           client_say(client, "%s: rank %d of %d, stride %d", name, team.rank, team.nRanks,
                      team.stride);
}

static bool counts_ranks(struct client *client)
{
    int (*to_world)(ncclComm_t comm, ncclTeam_t of, int rank);
    int (*to_lsa)(ncclComm_t comm, ncclTeam_t of, int rank);
    int (*slots)(int elements, int bytes);
    ncclTeam_t (*cft)(ncclComm_t comm, int mode);
    const ncclTeam_t pair = {.nRanks = 2, .rank = 0, .stride = 1};
    void (*nothing)(void);

    if (!find(client, "ncclTeamRankToWorld", (void *)&to_world) ||
        !find(client, "ncclTeamRankToLsa", (void *)&to_lsa) ||
        !find(client, "ncclLLA2ACalcSlots", (void *)&slots) ||
        !find(client, "ncclTeamCft", (void *)&cft))
        return false;
    if (find(client, "ncclParamDumpAll", (void *)&nothing))
        nothing();
    if (find(client, "ncclResetDebugInit", (void *)&nothing))
        nothing();
    return (to_world(client->comm, pair, 1) == client->rank + 1 &&
            to_lsa(client->comm, pair, 1) == 1 && slots(10, 12) == 20 &&
            cft(client->comm, 0).nRanks == 1) ||
           client_say(client, "ranks or slots are counted wrong");
}

bool later_questions_have_answers(struct client *client)
{
    ncclCommProperties_t properties = {.size = sizeof(properties), .magic = NCCL_ABI_CONFIG_MAGIC};
    ncclResult_t (*ask)(ncclComm_t comm, ncclCommProperties_t * properties);

    properties.deviceApiSupport = properties.hostRmaSupport = true;
    if (!find(client, "ncclCommQueryProperties", (void *)&ask) ||
        !client_ok(client, ask(client->comm, &properties), "ncclCommQueryProperties"))
        return false;
    if (properties.rank != client->rank || properties.nRanks != client->size ||
        properties.deviceApiSupport || properties.hostRmaSupport ||
        properties.nLsaTeams != client->size)
        return client_say(client, "wrong properties");
    properties.magic = 1;
    return client_refused(client, ask(client->comm, &properties), ncclInvalidArgument,
                          "NCCL_COMM_PROPERTIES_INITIALIZER") &&
           is_team(client, "ncclTeamWorld", client->size, client->rank) &&
           is_team(client, "ncclTeamRail", client->size, client->rank) &&
           is_team(client, "ncclTeamLsa", 1, 0) && is_team(client, "ncclTeamCftMultimem", 1, 0) &&
           counts_ranks(client);
}

/* ---- No -------------------------------------------------------------------------------------- */

/* Their arguments are not looked at, so they may be called without. */
bool later_functions_say_no(struct client *client)
{
    static const char *const names[] = {"ncclDevCommCreate",
                                        "ncclDevCommDestroy",
                                        "ncclLsaBarrierCreateRequirement",
                                        "ncclGinBarrierCreateRequirement",
                                        "ncclGinInboxA2ACreateRequirement",
                                        "ncclGinOutboxCreateRequirement",
                                        "ncclCftBarrierCreateRequirement",
                                        "ncclLLA2ACreateRequirement",
                                        "ncclGetLsaMultimemDevicePointer",
                                        "ncclGetMultimemDevicePointer",
                                        "ncclGetLsaDevicePointer",
                                        "ncclGetPeerDevicePointer",
                                        "ncclGetMultimemDeviceLeInfo",
                                        "ncclGetCftDeviceLeInfo",
                                        "ncclGetPeerDeviceLeInfo",
                                        "ncclPutSignal",
                                        "ncclSignal",
                                        "ncclWaitSignal",
                                        "ncclCommSuspend",
                                        "ncclCommResume",
                                        "ncclCommMemStats",
                                        "ncclParamBind",
                                        "ncclParamGetI8",
                                        "ncclParamGetI16",
                                        "ncclParamGetI32",
                                        "ncclParamGetI64",
                                        "ncclParamGetU8",
                                        "ncclParamGetU16",
                                        "ncclParamGetU32",
                                        "ncclParamGetU64",
                                        "ncclParamGetStr",
                                        "ncclParamGet",
                                        "ncclParamGetParameter",
                                        "ncclParamGetAllParameterKeys",
                                        "ncclSetEncryption"};
    ncclResult_t (*function)(void);
    bool fine = true;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && fine; i++) {
        char words[64];

        snprintf(words, sizeof(words), "%s: ", names[i]);
        fine = find(client, names[i], (void *)&function) &&
               client_refused(client, function(), ncclInvalidUsage, words);
    }
    return fine && sums_up(client, client->comm);
}
