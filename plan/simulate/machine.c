/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - the keys by which a machine's numbers are set, and machines that have a name. */
#include "plan/simulate/machine.h"

#include "base/caller/number.h"
#include "base/fail.h"
#include "plan/simulate/route.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Keys ------------------------------------------------------------------------------------ */

static const char *const inside_words[] = {"switch", "memory", "pcie", NULL};
static const char *const fabric_words[] = {"flat", "tree", "rails", "torus", "dragonfly", NULL};
static const char *const routes_words[] = {"adaptive", "fixed", NULL};

static const struct {
    const char *key;
    size_t offset;
    double unit;              /* a number of so many of these; 0: a whole number, from 1 on */
    const char *const *words; /* or one of these */
    const char *sentence;
} keys[] = {
    {"host_ranks", offsetof(struct machine, host_ranks), 0, NULL, "ranks of a host"},
    {"inside", offsetof(struct machine, inside), 0, inside_words,
     "what joins ranks of a host: switch, memory (all share it) or pcie (two halves)"},
    {"port_GBps", offsetof(struct machine, port_bw), 1e9, NULL,
     "a rank's own port inside of its host, in each direction"},
    {"bus_GBps", offsetof(struct machine, bus_bw), 1e9, NULL,
     "the memory that ranks of a host share, or what joins the halves of a pcie host"},
    {"inside_us", offsetof(struct machine, inside_latency), 1e-6, NULL,
     "latency of a message inside of a host"},
    {"nics", offsetof(struct machine, nics), 0, NULL, "adapters of a host"},
    {"nic_GBps", offsetof(struct machine, nic_bw), 1e9, NULL, "an adapter, in each direction"},
    {"network_us", offsetof(struct machine, network_latency), 1e-6, NULL,
     "latency of a message between hosts"},
    {"hop_us", offsetof(struct machine, hop_latency), 1e-6, NULL,
     "latency that each further link of the fabric adds"},
    {"message_us", offsetof(struct machine, message), 1e-6, NULL,
     "time that a message between hosts costs the rank that sends it"},
    {"fabric", offsetof(struct machine, fabric), 0, fabric_words,
     "what joins hosts: flat (never full), tree, rails, torus or dragonfly"},
    {"routes", offsetof(struct machine, routes), 0, routes_words,
     "adaptive: uplinks of a switch are one; fixed: each pair of ranks has one of them"},
    {"leaf_hosts", offsetof(struct machine, leaf_hosts), 0, NULL,
     "hosts below a leaf switch, or a router of a dragonfly"},
    {"spines", offsetof(struct machine, spines), 0, NULL,
     "uplinks of a leaf switch, or routers of a group of a dragonfly"},
    {"oversubscription", offsetof(struct machine, oversubscription), 1, NULL,
     "how many times less bandwidth goes up from a leaf switch than comes from below"},
    {"x", offsetof(struct machine, x), 0, NULL, "hosts of a torus in the first dimension"},
    {"y", offsetof(struct machine, y), 0, NULL, "in the second"},
    {"z", offsetof(struct machine, z), 0, NULL, "in the third"},
    {"cable_GBps", offsetof(struct machine, cable_bw), 1e9, NULL,
     "a link of a torus or between routers of a dragonfly, in each direction"},
    {"copy_GBps", offsetof(struct machine, copy_bw), 1e9, NULL, "a rank's copying"},
    {"reduce_GBps", offsetof(struct machine, reduce_bw), 1e9, NULL,
     "a rank's reducing, of all that it reads"},
    {"step_us", offsetof(struct machine, step), 1e-6, NULL,
     "what every copy or reduce step costs beside that"},
    {"together", offsetof(struct machine, together), 0, NULL,
     "programs of a rank that move data at a time: 1 for a thread of a CPU"},
    {"slots", offsetof(struct machine, slots), 0, NULL, "slots of a link"},
    {"slot_bytes", offsetof(struct machine, slot_bytes), 0, NULL, "bytes of a slot"},
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static bool set_value(struct machine *machine, int i, const char *value)
{
    char *member = (char *)machine + keys[i].offset, *end = NULL;

    if (keys[i].words) {
        for (int w = 0; keys[i].words[w]; w++)
            if (!strcmp(keys[i].words[w], value)) {
                memcpy(member, &w, sizeof(w));
                return true;
            }
        return false;
    }
    if (keys[i].unit > 0) {
        double number = number_read(value, &end) * keys[i].unit;

        /* Time may cost nothing; a bandwidth of nothing is a link that has failed. */
        if (end == value || *end || !(number >= 0) || number > 1e30 ||
            (keys[i].unit >= 1 && number <= 0))
            return false;
        memcpy(member, &number, sizeof(number));
    } else {
        long number = strtol(value, &end, 10);
        int whole = (int)number;

        if (end == value || *end || number < 1 || number > INT_MAX)
            return false;
        memcpy(member, &whole, sizeof(whole));
    }
    return true;
}

rondo_result machine_set(struct machine *machine, const char *key, const char *value)
{
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].key, key)) {
            if (set_value(machine, i, value))
                return RONDO_OK;
            return rondo_fail(RONDO_ERROR_INVALID, "\"%s\" is no value of %s: %s.", value, key,
                              keys[i].sentence);
        }
    return rondo_fail(RONDO_ERROR_INVALID, "A topology has no \"%s\": see --list.", key);
}

/* Sets what a text says, "key=value,key=value". */
static rondo_result set_all(struct machine *machine, const char *text)
{
    char *copy = strdup(text), *rest = NULL;
    rondo_result result = RONDO_OK;

    if (!copy)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a topology.");
    for (char *part = strtok_r(copy, ",", &rest); part && !result;
         part = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(part, '=');

        if (value)
            *value++ = '\0';
        result = machine_set(machine, part, value ? value : "");
    }
    free(copy);
    return result;
}

const char *machine_key(int i, const char **ret_sentence)
{
    if (i < 0 || i >= KEYS)
        return NULL;
    *ret_sentence = keys[i].sentence;
    return keys[i].key;
}

void machine_value(const struct machine *machine, int i, char text[64])
{
    const char *member = (const char *)machine + keys[i].offset;
    double number;
    int whole;

    if (keys[i].unit > 0) {
        memcpy(&number, member, sizeof(number));
        snprintf(text, 64, "%.6g", number / keys[i].unit);
        return;
    }
    memcpy(&whole, member, sizeof(whole));
    if (keys[i].words)
        snprintf(text, 64, "%s", keys[i].words[whole]);
    else
        snprintf(text, 64, "%d", whole);
}

/* ---- Those that have a name ------------------------------------------------------------------ */

/* Each row is what a user would write; complete() fills in what it does not say. */
static const struct {
    const char *name, *sentence, *base /* a row before, whose values it begins with */, *values;
} named[] = {
    /* Two numbers, for those who think in alpha and beta: all else is free. */
    {"alpha-beta",
     "one rank a host, 1 us and 10 GB/s from everyone to everyone, nothing else costs anything",
     NULL,
     "host_ranks=1,inside=switch,port_GBps=10,inside_us=1,nics=1,nic_GBps=10,network_us=1,"
     "fabric=flat,copy_GBps=1e9,reduce_GBps=1e9"},
    {"here", "this kind of machine: one host, ranks are processes that meet in its memory", NULL,
     "host_ranks=1048576,inside=memory,port_GBps=10,bus_GBps=40,inside_us=0.5,nics=1,nic_GBps=1.25,"
     "network_us=30,fabric=flat,copy_GBps=10,reduce_GBps=10,step_us=0.1,together=1"},
    {"hosts", "hosts of 8 processes with one 25 Gb/s Ethernet adapter each, over TCP", "here",
     "host_ranks=8,bus_GBps=100,nic_GBps=2.9,network_us=25,message_us=3"},
    {"dgx",
     "servers of 8 H100 behind NVSwitch, a 400 Gb/s adapter for each, any fabric that is not full",
     NULL,
     "host_ranks=8,inside=switch,port_GBps=360,inside_us=1,nics=8,nic_GBps=48.5,network_us=5,"
     "hop_us=0.3,message_us=0.5,fabric=flat,copy_GBps=1400,reduce_GBps=2500,step_us=0.3,together=5,"
     "slot_bytes=4194304"},
    {"pcie", "servers of 8 GPUs on two PCIe 4 switches, two 100 Gb/s adapters", NULL,
     "host_ranks=8,inside=pcie,port_GBps=24,bus_GBps=24,inside_us=2,nics=2,nic_GBps=12,"
     "network_us=5,message_us=0.5,fabric=flat,copy_GBps=600,reduce_GBps=900,step_us=1,together=5,"
     "slot_bytes=1048576"},
    {"fat-tree",
     "one rank a host with 100 Gb/s, leaf switches of 16 hosts, 4 uplinks, cores half as wide",
     NULL,
     "host_ranks=1,port_GBps=12,inside_us=1,nics=1,nic_GBps=12,network_us=2,hop_us=0.3,"
     "message_us=0.5,fabric=tree,leaf_hosts=16,spines=4,oversubscription=2,copy_GBps=20,"
     "reduce_GBps=20,step_us=0.1,together=1"},
    {"rails",
     "servers as in dgx, rail-optimised: adapter i of 32 servers on leaf switch i of their pod",
     "dgx", "fabric=rails,leaf_hosts=32,spines=8"},
    {"torus2d",
     "one rank a node, 16 x 16 nodes in two rings each, 25 GB/s in each of four directions", NULL,
     "host_ranks=1,port_GBps=100,nics=1,nic_GBps=100,network_us=1,hop_us=0.1,message_us=0.2,"
     "fabric=torus,x=16,y=16,cable_GBps=25,copy_GBps=500,reduce_GBps=500,step_us=0.2"},
    {"torus3d", "one rank a node, 16 x 16 x 16 nodes, 25 GB/s in each of six directions", "torus2d",
     "z=16,port_GBps=150,nic_GBps=150"},
    {"dragonfly",
     "one rank a host with 200 Gb/s, 16 hosts a router, 16 routers a group, all groups joined",
     NULL,
     "host_ranks=1,port_GBps=24,nics=1,nic_GBps=24,network_us=1.5,hop_us=0.3,message_us=0.5,"
     "fabric=dragonfly,leaf_hosts=16,spines=16,cable_GBps=24,copy_GBps=50,reduce_GBps=50,"
     "step_us=0.2,together=1"},
};

enum { NAMED = sizeof(named) / sizeof(named[0]), SLOTS = 8, SLOT_BYTES = 131072 };

/* Fills in what a row does not say. */
static void complete(struct machine *machine)
{
    machine->leaf_hosts = machine->leaf_hosts ? machine->leaf_hosts : 16;
    machine->spines = machine->spines ? machine->spines : 4;
    machine->oversubscription = machine->oversubscription > 0 ? machine->oversubscription : 1;
    machine->x = machine->x ? machine->x : 1;
    machine->y = machine->y ? machine->y : 1;
    machine->z = machine->z ? machine->z : 1;
    machine->cable_bw = machine->cable_bw > 0 ? machine->cable_bw : machine->nic_bw;
    machine->bus_bw = machine->bus_bw > 0 ? machine->bus_bw : machine->port_bw;
    machine->together = machine->together ? machine->together : 5;
    machine->slots = machine->slots ? machine->slots : SLOTS;
    machine->slot_bytes = machine->slot_bytes ? machine->slot_bytes : SLOT_BYTES;
}

static int row_of(const char *name)
{
    int i = 0;

    while (i < NAMED && strcmp(named[i].name, name) != 0)
        i++;
    return i;
}

static rondo_result read_row(int i, struct machine *ret_machine)
{
    rondo_result result = RONDO_OK;

    if (named[i].base)
        result = set_all(ret_machine, named[row_of(named[i].base)].values);
    if (!result)
        result = set_all(ret_machine, named[i].values);
    ret_machine->name = named[i].name;
    complete(ret_machine);
    return result;
}

const char *machine_name(int i, const char **ret_sentence)
{
    if (i < 0 || i >= NAMED)
        return NULL;
    *ret_sentence = named[i].sentence;
    return named[i].name;
}

rondo_result machine_find(const char *name, struct machine *ret_machine)
{
    int i = row_of(name);

    *ret_machine = (struct machine){0};
    return i < NAMED ? read_row(i, ret_machine)
                     : rondo_fail(RONDO_ERROR_INVALID,
                                  "There is no topology \"%s\": see --list, or give a file.", name);
}

rondo_result machine_parse(const char *text, struct machine *ret_machine)
{
    const char *comma = strchr(text, ',');
    char *name = strndup(text, comma ? (size_t)(comma - text) : strlen(text));
    struct machine machine;
    rondo_result result;

    if (!name)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a topology.");
    result = machine_find(name, &machine);
    free(name);
    if (!result && comma)
        result = set_all(&machine, comma + 1);
    if (!result)
        *ret_machine = machine;
    return result;
}

/* ---- Does it fit? ---------------------------------------------------------------------------- */

enum { PLACES_MAX = 1 << 30, UPLINKS_MAX = 1 << 24 };

/* True if the ranks of a whole fabric, or below its largest part, are more than route.c counts. */
static bool is_too_large(const struct machine *machine)
{
    int places = PLACES_MAX / machine->host_ranks;

    if (machine->fabric == FABRIC_TORUS)
        places = places / machine->x / machine->y / machine->z;
    else if (machine->fabric != FABRIC_FLAT)
        places /= machine->leaf_hosts;
    if (machine->fabric == FABRIC_DRAGONFLY)
        places /= machine->spines;
    return places < 1 ||
           (machine->fabric == FABRIC_RAILS && machine->nics > UPLINKS_MAX / machine->spines);
}

rondo_result machine_check(const struct machine *machine, int ranks)
{
    if (is_too_large(machine))
        return rondo_fail(
            RONDO_ERROR_INVALID,
            "A %s of that size is too large: host_ranks, leaf_hosts and spines, or x, "
            "y and z, make more than %d places.",
            fabric_words[machine->fabric], PLACES_MAX);
    if (machine->fabric == FABRIC_TORUS &&
        machine->x / 2 + machine->y / 2 + machine->z / 2 > ROUTE_MAX - 2)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "Ways through a torus of %d x %d x %d hosts may have more than %d links: "
                          "make the longest side shorter.",
                          machine->x, machine->y, machine->z, ROUTE_MAX - 2);
    if (machine->host_ranks < ranks && machine->host_ranks % machine->nics)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%d ranks of a host do not share %d adapters evenly: make host_ranks a "
                          "multiple of nics.",
                          machine->host_ranks, machine->nics);
    if (machine->inside == INSIDE_PCIE && machine->host_ranks % 2)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "A pcie host has two halves, so host_ranks is even, not %d.",
                          machine->host_ranks);
    if (machine->fabric == FABRIC_TORUS &&
        ranks > machine->x * machine->y * machine->z * machine->host_ranks)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%d ranks have no place in a torus of %d x %d x %d hosts of %d: make x, "
                          "y or z larger.",
                          ranks, machine->x, machine->y, machine->z, machine->host_ranks);
    return RONDO_OK;
}
