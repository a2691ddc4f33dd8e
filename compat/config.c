/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c - configurations: what of NCCL's concerns us, and what we give to Rondo.
 *
 * A struct of NCCL's says how long it is and of which version. Only fields that the caller's header
 * has are read, so headers older and newer than ours work. Each field is a row of a table: it is a
 * wish that Rondo's configuration has, too, or it is named once at RONDO_LOG=info with the reason
 * why nothing comes of it. Values that NCCL refuses are refused.
 */
#include "compat/compat.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* True if a struct of `size` bytes has this field. */
#define HAS(type, size, field) \
    ((size) >= offsetof(type, field) + sizeof(((const type *)NULL)->field))

/* ---- The table ------------------------------------------------------------------------------- */

enum { VERSION_2_30 = 23000, NOTHING = -1 };
enum { POLICY_ZERO = 2 }; /* of CTAPolicy: no blocks at all where copy engines do */
#define AT(field)    offsetof(ncclConfig_t, field)
#define LATER(place) (AT(nvlinkCentricSched) + (place) * sizeof(int)) /* of 2.30, after 2.28's */
#define WISH(field)  (int)offsetof(struct wishes, field)

static const struct row {
    const char *name;
    size_t at;       /* in ncclConfig_t */
    int least, most; /* that it may be */
    int wish;        /* where it goes in struct wishes; NOTHING: nowhere, as `why` says */
    int usual;       /* the value that asks for what is done anyway */
    const char *why;
} rows[] = {
    {"blocking", AT(blocking), 0, 1, WISH(blocking), 0, NULL},
    {"minCTAs", AT(minCTAs), 1, INT_MAX, WISH(min_blocks), 0, NULL},
    {"maxCTAs", AT(maxCTAs), 1, INT_MAX, WISH(max_blocks), 0, NULL},
    {"trafficClass", AT(trafficClass), 0, UINT8_MAX, WISH(traffic_class), 0, NULL},
    {"CTAPolicy", AT(CTAPolicy), 0, 3, WISH(policy), POLICY_ZERO,
     "how many blocks a call has follows from the call and the device"},
    {"cgaClusterSize", AT(cgaClusterSize), 0, 8, NOTHING, 0, "Rondo's kernels have no clusters"},
    {"splitShare", AT(splitShare), 0, 1, NOTHING, 0,
     "parts share mapped memory, device memory and measured costs with their parent in any case, "
     "and have rings of their own"},
    {"shrinkShare", AT(shrinkShare), 0, 1, NOTHING, 0,
     "parts share mapped memory, device memory and measured costs with their parent in any case, "
     "and have rings of their own"},
    {"collnetEnable", AT(collnetEnable), 0, 1, NOTHING, 0,
     "Rondo has no sums inside of network switches"},
    {"nvlsCTAs", AT(nvlsCTAs), 1, INT_MAX, NOTHING, 0,
     "calls through NVSwitch have as many blocks as others"},
    {"nChannelsPerNetPeer", AT(nChannelsPerNetPeer), 1, INT_MAX, NOTHING, 0,
     "RONDO_TCP_STREAMS and RONDO_VERBS_DEVICES say how hosts are connected"},
    {"nvlinkCentricSched", AT(nvlinkCentricSched), 0, 1, NOTHING, 0,
     "the order of ranks follows the links that were found"},
    {"graphUsageMode", LATER(1), 0, 2, NOTHING, 2, "calls may be captured in any mixture"},
    {"numRmaCtx", LATER(2), 1, INT_MAX, NOTHING, 0, "Rondo has no one-sided calls"},
    {"maxP2pPeers", LATER(3), 1, INT_MAX, NOTHING, 0, "every rank may talk with every other"},
    {"graphStreamOrdering", LATER(4), 0, 1, NOTHING, 1,
     "calls of one communicator are in order, in graphs and outside"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- What nothing comes of ------------------------------------------------------------------- */

static bool is_told(void)
{
    const char *level = getenv("RONDO_LOG");

    return level && (strcmp(level, "info") == 0 || strcmp(level, "debug") == 0);
}

/* Writes a line that looks as those of Rondo's log do, which cannot be seen from here. */
static void tell(const struct row *row, int value)
{
    static atomic_bool told[ROWS];
    char line[512];
    int length;

    if (!is_told() || atomic_exchange_explicit(&told[row - rows], true, memory_order_relaxed))
        return;
    length =
        snprintf(line, sizeof(line), "rondo info: ncclConfig_t: nothing comes of %s = %d: %s\n",
                 row->name, value, row->why);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* nobody to tell */
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* True of a wish that nothing or `usual` is asked for by, maybe among others. */
static bool is_granted(const struct row *row, int value)
{
    return row->wish != NOTHING && (!value || value & row->usual);
}

static ncclResult_t take_row(const ncclConfig_t *config, const struct row *row,
                             struct wishes *wishes)
{
    int value;

    if (config->size < row->at + sizeof(value) ||
        (row->at > AT(nvlinkCentricSched) && config->version < VERSION_2_30))
        return ncclSuccess;
    memcpy(&value, (const char *)config + row->at, sizeof(value));
    if (value == NCCL_CONFIG_UNDEF_INT)
        return ncclSuccess;
    if (value < row->least || value > row->most)
        return compat_fail(NULL, ncclInvalidArgument,
                           "The configuration says %s = %d; it may be %d to %d.", row->name, value,
                           row->least, row->most);
    if (row->wish != NOTHING)
        memcpy((char *)wishes + row->wish, &value, sizeof(value));
    if (row->why && value != row->usual && !is_granted(row, value))
        tell(row, value);
    return ncclSuccess;
}

/* NCCL's names of networks, whatever the case of their letters, or Rondo's. */
static ncclResult_t take_network(const char *name, const char **ret_network)
{
    static const char *const names[][2] = {
        {"Socket", "tcp"}, {"IB", "verbs"}, {"tcp", "tcp"}, {"verbs", "verbs"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(name, names[i][0]) == 0) {
            *ret_network = names[i][1];
            return ncclSuccess;
        }
    return compat_fail(NULL, ncclInvalidArgument,
                       "The configuration says netName = \"%s\"; there is Socket, which is "
                       "Rondo's tcp, and IB, which is its verbs, and there are no plugins.",
                       name);
}

static ncclResult_t take_words(const ncclConfig_t *config, struct wishes *wishes)
{
    ncclResult_t result = ncclSuccess;

    if (HAS(ncclConfig_t, config->size, netName) && config->netName && config->netName[0])
        result = take_network(config->netName, &wishes->network);
    if (HAS(ncclConfig_t, config->size, commName) && config->commName)
        snprintf(wishes->name, sizeof(wishes->name), "%s", config->commName);
    return result;
}

ncclResult_t compat_config_read(const ncclConfig_t *config, const struct wishes *inherited,
                                struct wishes *ret_wishes)
{
    struct wishes wishes = {.blocking = 1};
    ncclResult_t result = ncclSuccess;

    if (inherited)
        wishes = *inherited;
    if (config && config->magic != NCCL_ABI_CONFIG_MAGIC)
        return compat_fail(NULL, ncclInvalidArgument,
                           "The configuration does not begin as NCCL_CONFIG_INITIALIZER: its magic "
                           "is %#x.",
                           config->magic);
    for (int i = 0; config && i < ROWS && !result; i++)
        result = take_row(config, &rows[i], &wishes);
    if (config && !result)
        result = take_words(config, &wishes);
    if (!result && wishes.max_blocks && wishes.min_blocks > wishes.max_blocks)
        result = compat_fail(NULL, ncclInvalidArgument,
                             "The configuration says minCTAs = %d and maxCTAs = %d; the first must "
                             "not be more than the second.",
                             wishes.min_blocks, wishes.max_blocks);
    if (!result)
        *ret_wishes = wishes;
    return result;
}

/* ---- What Rondo is given --------------------------------------------------------------------- */

/* A rank that says nothing is no error to clients of NCCL, who watch over it themselves; one that
 * has died still is. Whoever wants it otherwise sets RONDO_TIMEOUT. */
static double patience(void)
{
    const char *wanted = getenv("RONDO_TIMEOUT");

    return wanted && *wanted ? -1 : 0;
}

rondo_config compat_config_of_calls(ncclComm_t comm)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = patience();
    config.cuda_device = comm->device;
    config.network = comm->wishes.network;
    config.traffic_class = comm->wishes.traffic_class;
    config.min_blocks = comm->wishes.min_blocks;
    config.max_blocks = comm->wishes.max_blocks;
    if (comm->wishes.policy & POLICY_ZERO)
        config.copy_engines = 1;
    return config;
}

/* Few and short messages: it shall take little memory. */
rondo_config compat_config_of_control(ncclComm_t comm)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = patience();
    config.algorithm = "auto";
    config.slot_bytes = 4096;
    config.slots = 2;
    config.cuda_device = -2; /* none: a second arena in device memory would never be used */
    config.network = comm->wishes.network;
    config.traffic_class = comm->wishes.traffic_class;
    return config;
}

ncclResult_t compat_config_algorithm(ncclComm_t comm, const ncclCollConfig_t *config,
                                     const char **ret_algorithm)
{
    *ret_algorithm = NULL;
    if (!config)
        return ncclSuccess;
    if (config->magic != NCCL_ABI_CONFIG_MAGIC)
        return compat_fail(comm, ncclInvalidArgument,
                           "The options of the call do not begin as NCCL_COLLCONFIG_INITIALIZER: "
                           "their magic is %#x.",
                           config->magic);
    /* Names that both know, such as ring and tree, mean the same; others are Rondo's to refuse. */
    if (HAS(ncclCollConfig_t, config->size, forceAlgSelection) && config->forceAlgSelection &&
        config->algSelection && *config->algSelection)
        *ret_algorithm = config->algSelection;
    return ncclSuccess;
}
