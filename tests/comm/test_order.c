/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_order.c - the order of ranks in rings and trees is the ring that `rondo topo` shows, on
 * recorded machines: over the cores that ranks are bound to, and over their GPUs.
 */
#include "collectives/levels/grouping.h"
#include "comm/engine/choose.h"
#include "comm/open.h"
#include "comm/state/comm.h"
#include "plan/verify/verify.h"
#include "topology/topology.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 16 };

static struct topology *open_machine(const char *name)
{
    struct topology *topology = NULL;
    char file[400];

    snprintf(file, sizeof(file), "%s/%s.xml", FIXTURES, name);
    cr_assert(topology_open(file, &topology) == RONDO_OK, "%s", rondo_last_error(NULL));
    return topology;
}

/* A communicator that is nothing but endpoints, all of one host. */
static rondo_comm open_endpoints(int size)
{
    const char *groups = getenv("RONDO_GROUPS");
    rondo_comm comm = {.size = size, .settings.groups = groups ? groups : ""};

    comm.endpoints = calloc((size_t)size, sizeof(*comm.endpoints));
    for (int rank = 0; rank < size; rank++)
        comm.endpoints[rank].place = (struct place_endpoint){-1, -1, -1, -1};
    return comm;
}

static void close_endpoints(rondo_comm *comm)
{
    grouping_close(comm->groups);
    free(comm->order);
    free(comm->endpoints);
}

static void sit(rondo_comm *comm, int rank, const struct topology_place *place)
{
    comm->endpoints[rank].place = (struct place_endpoint){
        (int16_t)place->core, (int16_t)place->package, (int16_t)place->numa, (int16_t)place->l3};
}

static void expect_order(const rondo_comm *comm, const int *expected, const char *what)
{
    for (int i = 0; i < comm->size; i++)
        cr_expect_eq(comm->order ? comm->order[i] : i, expected[i], "%s, place %d", what, i);
}

static bool is_by_number(const int *order, int count)
{
    for (int i = 0; i < count; i++)
        if (order[i] != i)
            return false;
    return true;
}

/* Ranks on cores 0, step, 2 step ... (round and round). */
static void expect_topologys_ring(const struct topology *topology, int ranks, int step)
{
    int cores = topology_cores(topology);
    struct topology_place places[RANKS];
    rondo_comm comm = open_endpoints(ranks);
    int ring[RANKS];

    for (int rank = 0; rank < ranks; rank++) {
        topology_place(topology, rank * step % cores, cores, &places[rank]);
        sit(&comm, rank, &places[rank]);
    }
    topology_ring(ranks, topology_distance_of_places, places, ring);
    cr_assert_eq(comm_find_groups(&comm), RONDO_OK);
    cr_expect_eq(comm.order == NULL, is_by_number(ring, ranks));
    expect_order(&comm, ring, "cores");
    close_endpoints(&comm);
}

Test(order, of_ranks_on_cores_is_the_ring_of_the_machine)
{
    const char *const machines[] = {"two_sockets", "four_sockets", "eight_numa"};

    for (int i = 0; i < 3; i++) {
        struct topology *topology = open_machine(machines[i]);

        for (int ranks = 1; ranks <= RANKS; ranks++)
            for (int step = 1; step <= 24; step++)
                expect_topologys_ring(topology, ranks, step);
        topology_close(topology);
    }
}

/* Eight ranks in turn on two sockets. */
static rondo_comm deal_ranks(int hosts)
{
    struct topology *topology = open_machine("two_sockets");
    int cores = topology_cores(topology);
    rondo_comm comm = open_endpoints(8);

    for (int rank = 0; rank < comm.size; rank++) {
        struct topology_place place;

        topology_place(topology, rank % 2 * cores / 2 + rank / 2, cores, &place);
        sit(&comm, rank, &place);
        comm.endpoints[rank].host[0] = (unsigned char)(rank / 2 % hosts);
    }
    topology_close(topology);
    cr_assert_eq(comm_find_groups(&comm), RONDO_OK);
    return comm;
}

Test(order, of_ranks_dealt_to_sockets_crosses_twice)
{
    rondo_comm comm = deal_ranks(1);

    expect_order(&comm, (int[]){0, 1, 3, 5, 7, 2, 4, 6}, "one host");
    close_endpoints(&comm);
}

/* Hosts have ranks 0 1 4 5 and 2 3 6 7, of which even ones are on one socket: its ring is entered
 * and left on different sockets. */
Test(order, of_several_hosts_goes_from_host_to_host)
{
    rondo_comm comm = deal_ranks(2);

    expect_order(&comm, (int[]){1, 5, 4, 0, 3, 7, 6, 2}, "two hosts");
    close_endpoints(&comm);
}

Test(order, is_by_number_where_ranks_are_not_bound)
{
    rondo_comm comm = open_endpoints(RANKS);

    cr_assert_eq(comm_find_groups(&comm), RONDO_OK);
    cr_expect_null(comm.order);
    close_endpoints(&comm);
}

Test(order, is_left_to_the_groups_that_a_setting_names)
{
    rondo_comm comm;

    setenv("RONDO_GROUPS", "4x2", 1);
    comm = deal_ranks(1);
    cr_expect_null(comm.order);
    cr_expect_not_null(comm.groups);
    close_endpoints(&comm);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Rank r has GPU device_of[r]; endpoints say what each rank's topology says of its pairs. */
static void expect_ring_of_gpus(const char *name, const int *device_of, int ranks)
{
    struct topology *topology = open_machine(name);
    rondo_comm comm = open_endpoints(ranks);
    int ring[RANKS], found[RANKS], length = 0, least = 0;

    cr_assert_eq(topology_find_links(topology), RONDO_OK);
    for (int rank = 0; rank < ranks; rank++) {
        struct device_endpoint *endpoint = &comm.endpoints[rank].device;

        endpoint->arena = 1;
        endpoint->uuid[0] = (unsigned char)(1 + device_of[rank]);
        for (int gpu = 0; gpu < topology_gpus(topology); gpu++) {
            int distance;

            cr_assert_not_null(topology_link_of(topology,
                                                topology_device_at(topology, device_of[rank])->pci,
                                                topology_device_at(topology, gpu)->pci, &distance));
            endpoint->seen[gpu][0] = (unsigned char)(1 + gpu);
            endpoint->links[gpu].distance = (uint8_t)distance;
        }
    }
    topology_ring(ranks, topology_distance_of_devices, topology, ring);
    cr_assert_eq(comm_find_groups(&comm), RONDO_OK);
    for (int i = 0; i < ranks; i++) {
        found[i] = device_of[comm.order ? comm.order[i] : i];
        least += topology_distance_of_devices(topology, ring[i], ring[(i + 1) % ranks]);
    }
    for (int i = 0; i < ranks; i++)
        length += topology_distance_of_devices(topology, found[i], found[(i + 1) % ranks]);
    cr_expect_eq(length, least, "%s: %d instead of %d", name, length, least);
    if (is_by_number(device_of, ranks))
        expect_order(&comm, ring, name);
    close_endpoints(&comm);
    topology_close(topology);
}

Test(order, of_ranks_with_gpus_is_the_ring_of_their_links)
{
    expect_ring_of_gpus("gpu8_two_sockets", (int[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    expect_ring_of_gpus("gpu8_two_sockets", (int[]){0, 4, 1, 5, 2, 6, 3, 7}, 8);
    expect_ring_of_gpus("gpu8_two_sockets", (int[]){7, 2, 5, 0, 6, 1, 4, 3}, 8);
    expect_ring_of_gpus("gpu4_one_socket", (int[]){0, 1, 2, 3}, 4);
    expect_ring_of_gpus("gpu4_one_socket", (int[]){2, 1, 0, 3}, 4);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* True if the plan sends to this rank. */
static bool sends_to(const struct plan *plan, int rank)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].verb == PLAN_SIGNAL && plan->steps[i].event == PLAN_DATA &&
            plan->steps[i].peer == rank)
            return true;
    return false;
}

static void prove(const struct algorithm *algorithm, rondo_collective collective, const int *order,
                  int size, int root)
{
    struct plan_request request = {
        .collective = collective, .size = size, .root = root, .order = order};
    struct plan *plans[RANKS] = {0};
    struct verify_report report;

    for (request.rank = 0; request.rank < size; request.rank++)
        cr_assert(algorithm_write(algorithm, &request, &plans[request.rank]) == RONDO_OK,
                  "%s, %d of %d: %s", algorithm->name, request.rank, size, rondo_last_error(NULL));
    for (int in_place = 0; in_place < 2; in_place++) {
        struct verify_options how = {.slots = 2, .in_place = in_place};

        cr_expect(verify_plans(plans, size, &how, &report) == RONDO_OK, "%s %s, root %d: %s",
                  algorithm->name, rondo_collective_name(collective), root, report.failure);
    }
    for (int i = 0; i < size && algorithm->neighbours && size > 2; i++)
        for (int other = 0; other < size; other++)
            if (other != order[(i + 1) % size] && other != order[(i + size - 1) % size])
                cr_expect_not(sends_to(plans[order[i]], other), "%d to %d", order[i], other);
    for (int rank = 0; rank < size; rank++)
        plan_close(plans[rank]);
}

/* Orders of the n-th kind: drawn at random by a fixed seed. */
static void draw_order(int *order, int size, unsigned seed)
{
    for (int i = 0; i < size; i++) {
        int other = rand_r(&seed) % (i + 1);

        order[i] = order[other];
        order[other] = i;
    }
}

Test(order, of_any_kind_gives_plans_that_are_proved)
{
    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES && algorithms[i]->any_order; c++)
            for (int size = 1; size <= 9 && algorithms[i]->forms[c].write; size++)
                for (unsigned seed = 0; seed < 4; seed++) {
                    int order[RANKS];

                    draw_order(order, size, seed + 7 * (unsigned)size);
                    prove(algorithms[i], (rondo_collective)c, order, size, size / 2);
                }
}

Test(order, is_that_of_the_plans_which_calls_run)
{
    const struct choice_key key = {
        .collective = RONDO_ALL_REDUCE, .type = RONDO_FLOAT32, .count = 1000, .algorithm = "ring"};
    int order[] = {0, 2, 1, 3};
    rondo_comm *comms[4];

    cr_assert(rondo_comm_open_all(4, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int rank = 0; rank < 4; rank++) {
        struct choice *choice;

        free(comms[rank]->order);
        comms[rank]->order = malloc(sizeof(order));
        memcpy(comms[rank]->order, order, sizeof(order));
        cr_assert_eq(choose(comms[rank], &key, &choice), RONDO_OK);
        cr_expect(sends_to(choice->plan, (int[]){2, 3, 1, 0}[rank]));
        cr_expect_not(sends_to(choice->plan, (int[]){3, 2, 0, 1}[rank]));
    }
    for (int rank = 0; rank < 4; rank++)
        rondo_comm_close(comms[rank]);
}
