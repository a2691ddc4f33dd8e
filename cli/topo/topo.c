/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.c - `rondo topo`: shows the machine as Rondo sees it, and how ranks, rings and trees lie on
 * it.
 */
#include "cli/common/argument.h"
#include "cli/commands.h"
#include "cli/topo/orders.h"

#include "base/fail.h"
#include "base/setting.h"

#include <string.h>

enum { RANKS_MAX = 4096 };

struct options {
    int ranks; /* 0: one per core */
    const char *input, *xml, *svg, *json;
};

#define SETS(member) ARGUMENT_SETS(struct options, member)

static const struct argument table[] = {
    {"ranks", 'n', "N", 0, ARGUMENT_NUMBER(struct options, ranks, 1, RANKS_MAX),
     "Place N ranks; without it one on every usable core"},
    {"input", 'i', "FILE", 0, SETS(input),
     "Show the machine recorded in FILE (hwloc XML) instead of this one; RONDO_TOPOLOGY does the "
     "same"},
    {"xml", 0, "FILE", 0, SETS(xml), "Record the machine in FILE, for --input and RONDO_TOPOLOGY"},
    {"svg", 0, "FILE", 0, SETS(svg), "Draw the machine, the ranks, their ring and their tree"},
    {"json", 0, "FILE", 0, SETS(json),
     "Write everything as JSON; - is the standard output, without the text"},
    {0}};

static const struct argument_command command = {
    .name = "rondo topo",
    .doc = "Shows packages, NUMA nodes, caches, cores, GPUs and NICs, where ranks are placed, and "
           "the ring and the tree that cross the machine's long distances least.",
    .table = table};

static bool succeeded(rondo_result result)
{
    if (result)
        fprintf(stderr, "rondo topo: %s\n", fail_sentence());
    return !result;
}

static bool show(const struct topology *topology, const struct options *options, int ranks)
{
    struct topo_orders orders;
    bool good = true;

    if (!topo_orders_open(topology, ranks, &orders)) {
        fprintf(stderr, "rondo topo: out of memory\n");
        return false;
    }
    if (!options->json || strcmp(options->json, "-")) {
        topology_print(topology, stdout);
        topo_orders_print(&orders, stdout);
    }
    if (options->xml)
        good &= succeeded(topology_write_xml(topology, options->xml));
    if (options->svg)
        good &= succeeded(topology_write_svg(topology, options->svg, ranks));
    if (options->json)
        good &= topo_orders_write_json(&orders, options->json);
    topo_orders_close(&orders);
    return good;
}

int command_topo(int argc, char **argv)
{
    struct options options = {.input = setting_read_word(SETTING_TOPOLOGY)};
    struct topology *topology = NULL;
    bool good;

    argument_parse(&command, argc, argv, &options);
    if (!succeeded(topology_open(options.input, &topology)))
        return 1;
    if (!succeeded(topology_find_links(topology))) {
        topology_close(topology);
        return 1;
    }
    good = show(topology, &options, options.ranks ? options.ranks : topology_cores(topology));
    topology_close(topology);
    return good ? 0 : 1;
}
