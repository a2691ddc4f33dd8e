/* SPDX-License-Identifier: BSD-3-Clause */
/* config.c - the fields of a configuration: which do what, and which are only named in the log. */
#include "bodies.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A communicator over all ranks with this configuration, for which `client->argument` has an id. */
static bool join(struct client *client, ncclConfig_t *config, ncclComm_t *ret_comm)
{
    const ncclUniqueId *id = client->argument ? client->argument : &client->id;

    return client_ok(client,
                     ncclCommInitRankConfig(ret_comm, client->size, *id, client->rank, config),
                     "joining with a configuration") &&
           sums_up(client, *ret_comm);
}

/* ---- What is refused ------------------------------------------------------------------------- */

#define FIELD(field, wrong)                          \
    {                                                \
#field, offsetof(ncclConfig_t, field), wrong \
    }

static const struct {
    const char *name;
    size_t at;
    int value;
} wrong_values[] = {
    FIELD(blocking, 2),      FIELD(blocking, -1),          FIELD(minCTAs, 0),
    FIELD(maxCTAs, 0),       FIELD(maxCTAs, -3),           FIELD(trafficClass, 256),
    FIELD(trafficClass, -1), FIELD(CTAPolicy, 9),          FIELD(cgaClusterSize, 9),
    FIELD(splitShare, 2),    FIELD(shrinkShare, -1),       FIELD(collnetEnable, 7),
    FIELD(nvlsCTAs, 0),      FIELD(nvlinkCentricSched, 2), FIELD(nChannelsPerNetPeer, 0),
};

static bool is_refused(struct client *client, ncclConfig_t *config, const char *words)
{
    ncclComm_t comm = NULL;

    return client_refused(client, ncclCommInitRankConfig(&comm, 1, client->id, 0, config),
                          ncclInvalidArgument, words);
}

bool config_refuses_wrong_values(struct client *client)
{
    ncclConfig_t foreign = NCCL_CONFIG_INITIALIZER, crossed = NCCL_CONFIG_INITIALIZER;
    ncclConfig_t pigeon = NCCL_CONFIG_INITIALIZER;
    bool fine = true;

    for (size_t i = 0; i < sizeof(wrong_values) / sizeof(wrong_values[0]) && fine; i++) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        char words[64];

        memcpy((char *)&config + wrong_values[i].at, &wrong_values[i].value, sizeof(int));
        snprintf(words, sizeof(words), "%s = %d", wrong_values[i].name, wrong_values[i].value);
        fine = is_refused(client, &config, words);
    }
    foreign.magic = 1;
    crossed.minCTAs = 5;
    crossed.maxCTAs = 4;
    pigeon.netName = "pigeon";
    return fine && is_refused(client, &foreign, "NCCL_CONFIG_INITIALIZER") &&
           is_refused(client, &crossed, "minCTAs = 5 and maxCTAs = 4") &&
           is_refused(client, &pigeon, "netName = \"pigeon\"");
}

/* ---- What is named --------------------------------------------------------------------------- */

bool config_fills_all(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL, part = NULL;

    config.blocking = 1;
    config.splitShare = config.shrinkShare = config.collnetEnable = 1;
    config.cgaClusterSize = 4;
    config.CTAPolicy = 2;
    config.nvlsCTAs = 3;
    config.minCTAs = 1;
    config.maxCTAs = 32;
    config.trafficClass = 8;
    config.netName = "Socket";
    return join(client, &config, &comm) &&
           client_ok(client, ncclCommSplit(comm, 0, client->rank, &part, &config),
                     "ncclCommSplit") &&
           sums_up(client, part) &&
           client_ok(client, ncclCommDestroy(part), "ncclCommDestroy of a part") &&
           client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy");
}

/* ---- commName -------------------------------------------------------------------------------- */

bool config_names_a_communicator(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER, none = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL, part = NULL;
    int value = 0;

    config.commName = "tensor-parallel 7";
    if (!join(client, &config, &comm))
        return false;
    ncclBcast(&value, 1, ncclInt32, 99, comm, client->stream);
    if (strncmp(ncclGetLastError(comm), "tensor-parallel 7: ", 19) != 0)
        return client_say(client, "no name: %s", ncclGetLastError(comm));
    if (!client_ok(client, ncclCommSplit(comm, 0, client->rank, &part, NULL), "ncclCommSplit"))
        return false;
    ncclBcast(&value, 1, ncclInt32, 99, part, client->stream);
    if (strncmp(ncclGetLastError(part), "tensor-parallel 7: ", 19) != 0)
        return client_say(client, "a part has no name: %s", ncclGetLastError(part));
    if (!client_ok(client, ncclCommDestroy(part), "ncclCommDestroy of a part") ||
        !client_ok(client, ncclCommSplit(comm, 0, client->rank, &part, &none), "ncclCommSplit"))
        return false;
    ncclBcast(&value, 1, ncclInt32, 99, part, client->stream);
    if (strncmp(ncclGetLastError(part), "tensor-parallel 7: ", 19) == 0)
        return client_say(client, "a configuration is inherited: %s", ncclGetLastError(part));
    return client_ok(client, ncclCommDestroy(part), "ncclCommDestroy of a part") &&
           client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy");
}

/* ---- trafficClass, netName ------------------------------------------------------------------- */

enum { CLASS = 0x48, SOCKETS = 1024 };

/* Connected sockets of this process that have the class. */
static int count_sockets(void)
{
    int count = 0;

    for (int fd = 0; fd < SOCKETS; fd++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof(peer), bytes = sizeof(int);
        int found = 0;

        if (getpeername(fd, (struct sockaddr *)&peer, &length) ||
            (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
            continue;
        count += !getsockopt(fd, IPPROTO_IP, IP_TOS, &found, &bytes) && found == CLASS;
    }
    return count;
}

bool config_marks_packets(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t part = NULL, grandchild = NULL;
    bool fine = sums_up(client, client->comm);
    int marked[3] = {count_sockets(), 0, 0};

    config.trafficClass = CLASS;
    config.netName = "sOCKET";
    fine = fine &&
           client_ok(client, ncclCommSplit(client->comm, 0, client->rank, &part, &config),
                     "ncclCommSplit with a traffic class") &&
           sums_up(client, part);
    marked[1] = count_sockets();
    fine = fine &&
           client_ok(client, ncclCommSplit(part, 0, client->rank, &grandchild, NULL),
                     "ncclCommSplit of that") &&
           sums_up(client, grandchild);
    marked[2] = count_sockets();
    if (fine && (marked[0] || !marked[1] || marked[2] <= marked[1]))
        fine = client_say(client, "marked sockets: %d, with the class %d, and with a part's %d",
                          marked[0], marked[1], marked[2]);
    return fine && client_ok(client, ncclCommDestroy(grandchild), "ncclCommDestroy") &&
           client_ok(client, ncclCommDestroy(part), "ncclCommDestroy of a part");
}

/* A sentence says that there is no RDMA, where there is none; where there is, it is used. */
bool config_takes_one_network(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    ncclResult_t result;

    config.netName = "IB";
    result = ncclCommInitRankConfig(&comm, client->size, client->id, client->rank, &config);
    if (!result)
        return sums_up(client, comm) && client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy");
    return client_refused(client, result, ncclInvalidUsage, "RDMA");
}

/* ---- minCTAs, maxCTAs ------------------------------------------------------------------------ */

/* A part whose kernels have so many blocks, and a sum of some MiB on it; 0: not set. */
bool config_counts_blocks(struct client *client)
{
    const struct blocks_wanted *wanted = client->argument;
    size_t count = wanted->count;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t part = NULL;
    float *memory = client_alloc(count * sizeof(float)), value = 1;
    bool fine;

    config.minCTAs = wanted->least ? wanted->least : NCCL_CONFIG_UNDEF_INT;
    config.maxCTAs = wanted->most ? wanted->most : NCCL_CONFIG_UNDEF_INT;
    client_write(memory, &value, sizeof(value));
    fine = client_ok(client, ncclCommSplit(client->comm, 0, client->rank, &part, &config),
                     "ncclCommSplit with numbers of CTAs") &&
           client_wait(client->stream);
    fprintf(stderr, "from here\n");
    fine =
        fine &&
        client_ok(client,
                  ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, part, client->stream),
                  "ncclAllReduce") &&
        client_wait(client->stream);
    client_read(&value, memory, sizeof(value));
    client_free(memory);
    if (fine && value != (float)client->size)
        fine = client_say(client, "the sum is %g", (double)value);
    return fine && client_ok(client, ncclCommDestroy(part), "ncclCommDestroy of a part");
}
