/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.c - `rondo topo`: shows the machine as Rondo sees it, and how ranks, rings and trees lie on
 * it.
 */
#include "cli/argument.h"
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

enum { OPTION_XML = 256, OPTION_SVG, OPTION_JSON };

static const struct argp_option option_table[] = {
    {"ranks", 'n', "N", 0, "Place N ranks; without it one on every usable core", 0},
    {"input", 'i', "FILE", 0,
     "Show the machine recorded in FILE (hwloc XML) instead of this one; RONDO_TOPOLOGY does the "
     "same",
     0},
    {"xml", OPTION_XML, "FILE", 0, "Record the machine in FILE, for --input and RONDO_TOPOLOGY", 0},
    {"svg", OPTION_SVG, "FILE", 0, "Draw the machine, the ranks, their ring and their tree", 0},
    {"json", OPTION_JSON, "FILE", 0,
     "Write everything as JSON; - is the standard output, without the text", 0},
    {0}};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'n':
        options->ranks = (int)argument_whole(state, "-n", value, 1, RANKS_MAX);
        return 0;
    case 'i':
        options->input = value;
        return 0;
    case OPTION_XML:
        options->xml = value;
        return 0;
    case OPTION_SVG:
        options->svg = value;
        return 0;
    case OPTION_JSON:
        options->json = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    option_table,
    parse_option,
    NULL,
    "Shows packages, NUMA nodes, caches, cores, GPUs and NICs, where ranks are placed, and "
    "the ring and the tree that cross the machine's long distances least.",
    NULL,
    NULL,
    NULL};

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
    static char name[] = "rondo topo";
    struct options options = {.input = setting_read_word(SETTING_TOPOLOGY)};
    struct topology *topology = NULL;
    bool good;

    argp_err_exit_status = 2;
    argv[0] = name;
    argp_parse(&parser, argc, argv, 0, NULL, &options);
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
