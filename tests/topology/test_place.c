/* SPDX-License-Identifier: BSD-3-Clause */
/* test_place.c - which core a rank gets, how far two are apart, and binding. */
#include "recorded.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <hwloc.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct topology_place place(const struct topology *topology, int rank, int size)
{
    struct topology_place here;

    topology_place(topology, rank, size, &here);
    return here;
}

static int distance(const struct topology *topology, int a, int b)
{
    struct topology_place x = place(topology, a, topology_cores(topology));
    struct topology_place y = place(topology, b, topology_cores(topology));

    cr_expect_eq(topology_place_distance(&x, &y), topology_place_distance(&y, &x));
    return topology_place_distance(&x, &y);
}

Test(place, ranks_fill_two_sockets_core_by_core)
{
    struct topology *topology = recorded_open("two_sockets");

    for (int rank = 0; rank < 64; rank++) {
        struct topology_place here = place(topology, rank, 64);

        cr_expect_eq(here.core, rank);
        cr_expect_eq(here.package, rank / 32);
        cr_expect_eq(here.numa, rank / 32);
        cr_expect_eq(here.l3, rank / 8);
        cr_expect_not(here.shared);
    }
    topology_close(topology);
}

Test(place, ranks_that_outnumber_cores_go_round_and_share)
{
    struct topology *topology = recorded_open("plain");

    for (int rank = 0; rank < 9; rank++) {
        cr_expect_eq(place(topology, rank, 9).core, rank % 4);
        cr_expect(place(topology, rank, 9).shared);
    }
    cr_expect_not(place(topology, 3, 4).shared);
    topology_close(topology);
}

Test(place, distance_grows_from_cache_to_numa_node_to_package)
{
    struct topology *topology = recorded_open("eight_numa");

    cr_expect_eq(distance(topology, 5, 5), TOPOLOGY_SAME);
    cr_expect_eq(distance(topology, 0, 7), TOPOLOGY_CLOSE);
    cr_expect_eq(distance(topology, 0, 8), TOPOLOGY_NUMA);
    cr_expect_eq(distance(topology, 0, 16), TOPOLOGY_PACKAGE);
    cr_expect_eq(distance(topology, 0, 63), TOPOLOGY_PACKAGE);
    cr_expect_eq(distance(topology, 0, 64), TOPOLOGY_MACHINE);
    topology_close(topology);
}

Test(place, cores_without_a_shared_cache_are_of_one_numa_node)
{
    struct topology *topology = recorded_open("plain");

    cr_expect_eq(place(topology, 0, 4).l3, -1);
    cr_expect_eq(distance(topology, 0, 3), TOPOLOGY_NUMA);
    topology_close(topology);
}

Test(place, binding_leaves_the_thread_on_its_core_only)
{
    struct topology *topology = NULL;
    struct topology_place here;
    cpu_set_t before, after;

    cr_assert_eq(topology_open(NULL, &topology), RONDO_OK, "%s", fail_sentence());
    here = place(topology, topology_cores(topology) - 1, topology_cores(topology));
    cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    cr_assert_eq(topology_bind(topology, &here), RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(sched_getaffinity(0, sizeof(after), &after), 0);
    if (topology_cpu_limit(topology) && topology_cpu_limit(topology) < CPU_COUNT(&before))
        cr_expect(CPU_EQUAL(&before, &after));
    else if (topology_cores(topology) > 1)
        cr_expect_lt(CPU_COUNT(&after), CPU_COUNT(&before));
    cr_expect_geq(CPU_COUNT(&after), 1);
    topology_close(topology);
}

Test(place, the_machine_without_its_devices_has_the_same_places)
{
    struct topology *whole = NULL, *cores = NULL;
    int size;

    cr_assert_eq(topology_open(NULL, &whole), RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(topology_open_cores(&cores), RONDO_OK, "%s", fail_sentence());
    size = topology_cores(whole);
    cr_expect_eq(topology_cores(cores), size);
    cr_expect_eq(topology_numa_nodes(cores), topology_numa_nodes(whole));
    cr_expect_eq(topology_devices(cores), 0);
    for (int rank = 0; rank < size; rank++) {
        struct topology_place here = place(cores, rank, size), there = place(whole, rank, size);

        cr_expect_eq(here.core, there.core);
        cr_expect_eq(topology_place_distance(&here, &there), TOPOLOGY_SAME);
    }
    topology_close(cores);
    topology_close(whole);
}

/* Opens the machine as a process of a container finds it that may run on one thread only. */
static struct topology *open_container(const char *name, unsigned thread)
{
    char recorded[512], file[] = "/tmp/rondo-container-XXXXXX";
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    struct topology *topology = NULL;
    hwloc_topology_t hwloc;
    int fd = mkstemp(file);

    snprintf(recorded, sizeof(recorded), FIXTURES "/%s.xml", name);
    hwloc_bitmap_set(allowed, thread);
    cr_assert(!hwloc_topology_init(&hwloc) && !hwloc_topology_set_xml(hwloc, recorded));
    hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    cr_assert(!hwloc_topology_load(hwloc));
    cr_assert(!hwloc_topology_allow(hwloc, allowed, NULL, HWLOC_ALLOW_FLAG_CUSTOM));
    cr_assert(fd >= 0 && !hwloc_topology_export_xml(hwloc, file, 0));
    hwloc_topology_destroy(hwloc);
    hwloc_bitmap_free(allowed);
    setenv("HWLOC_XMLFILE", file, 1);
    cr_assert_eq(topology_open_cores(&topology), RONDO_OK, "%s", fail_sentence());
    unsetenv("HWLOC_XMLFILE");
    close(fd);
    unlink(file);
    return topology;
}

static struct topology_place place_in_container(const char *name, unsigned thread)
{
    struct topology *topology = open_container(name, thread);
    uint64_t cpus[16] = {0};
    struct topology_place here;

    cpus[thread / 64] = (uint64_t)1 << thread % 64;
    cr_expect_eq(topology_cores(topology), 1);
    cr_expect_eq(topology_machine_cores(topology), 1);
    topology_place_of_cpus(topology, cpus, 16, &here);
    topology_close(topology);
    return here;
}

Test(place, containers_with_cores_of_their_own_agree_which_are_where)
{
    struct topology_place first = place_in_container("two_sockets", 2);
    struct topology_place neighbour = place_in_container("two_sockets", 4);
    struct topology_place far = place_in_container("two_sockets", 70);

    cr_expect_eq(first.core, 1);
    cr_expect_eq(neighbour.core, 2);
    cr_expect_eq(topology_place_distance(&first, &neighbour), TOPOLOGY_CLOSE);
    cr_expect_eq(far.core, 35);
    cr_expect_eq(far.numa, 1);
    cr_expect_eq(far.package, 1);
    cr_expect_eq(topology_place_distance(&first, &far), TOPOLOGY_MACHINE);
}

/* hwloc says that it has bound a thread where the machine is not this one, and does nothing. */
Test(place, a_rank_has_its_core_by_the_number_of_the_machine)
{
    struct topology *topology = open_container("two_sockets", 70);
    struct topology_place here = place(topology, 0, 1);

    cr_expect_eq(here.core, 35);
    cr_expect_eq(topology_bind(topology, &here), RONDO_OK, "%s", fail_sentence());
    here.core = 0;
    cr_expect_eq(topology_bind(topology, &here), RONDO_ERROR_INVALID);
    topology_close(topology);
}

Test(place, a_shared_core_is_not_bound_to)
{
    struct topology *topology = NULL;
    struct topology_place here;
    cpu_set_t before, after;

    cr_assert_eq(topology_open(NULL, &topology), RONDO_OK, "%s", fail_sentence());
    here = place(topology, 0, topology_cores(topology) + 1);
    cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    cr_expect_eq(topology_bind(topology, &here), RONDO_OK);
    cr_assert_eq(sched_getaffinity(0, sizeof(after), &after), 0);
    cr_expect(CPU_EQUAL(&before, &after));
    topology_close(topology);
}

Test(place, nothing_can_be_bound_on_a_recorded_machine)
{
    struct topology *topology = recorded_open("two_sockets");
    struct topology_place here = place(topology, 1, 2);

    cr_expect_eq(topology_bind(topology, &here), RONDO_ERROR_UNSUPPORTED);
    cr_expect_not_null(strstr(fail_sentence(), "core 1"));
    topology_close(topology);
}

Test(place, a_core_that_is_not_there_is_refused)
{
    struct topology *topology = recorded_open("plain");
    struct topology_place here = {.core = 4};

    cr_expect_eq(topology_bind(topology, &here), RONDO_ERROR_INVALID);
    topology_close(topology);
}
