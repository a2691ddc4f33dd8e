/* SPDX-License-Identifier: BSD-3-Clause */
/* test_config.c - what each field of a client's configuration does, and what the log says of it. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run(const struct client_world *world, client_body body)
{
    const char *said = client_run(world, body);

    cr_assert(!said[0], "%d %s: %s", world->size, world->processes ? "processes" : "threads", said);
}

/* Returns what is written to stderr while the body runs; the caller frees it. */
static char *run_captured(const struct client_world *world, client_body body)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    const char *said;
    char *text;
    long bytes = 0;

    cr_assert(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    said = client_run(world, body);
    dup2(before, STDERR_FILENO);
    close(before);
    cr_assert(!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0);
    text = calloc(1, (size_t)bytes + 1);
    rewind(file);
    cr_assert(fread(text, 1, (size_t)bytes, file) == (size_t)bytes);
    fclose(file);
    cr_assert(!said[0], "%s\n%s", said, text);
    return text;
}

static int count_of(const char *text, const char *words)
{
    int count = 0;

    for (; (text = strstr(text, words)); text++)
        count++;
    return count;
}

Test(config, wrong_values_are_refused)
{
    run(&(struct client_world){.size = 1, .apart = true}, config_refuses_wrong_values);
}

/* Two communicators have them: they are named once. */
Test(config, what_nothing_comes_of_is_named_once)
{
    static const char *const named[] = {"splitShare = 1", "shrinkShare = 1", "nvlsCTAs = 3",
                                        "cgaClusterSize = 4", "collnetEnable = 1"};
    static const char *const honoured[] = {"blocking",     "minCTAs", "maxCTAs",
                                           "trafficClass", "netName", "CTAPolicy"};
    const char *memory = getenv("CLIENT_MEMORY");
    char *text;

    setenv("RONDO_LOG", "info", 1);
    text = run_captured(&(struct client_world){.size = 2, .apart = true}, config_fills_all);
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        cr_expect(count_of(text, named[i]) == 1, "%s %d times in: %s", named[i],
                  count_of(text, named[i]), text);
    for (size_t i = 0; i < sizeof(honoured) / sizeof(honoured[0]); i++)
        cr_expect(!strstr(text, honoured[i]), "%s in: %s", honoured[i], text);
    if (memory && strcmp(memory, "device") == 0) /* the wish has come through; these are threads */
        cr_expect(strstr(text, "copy engines are for ranks that are processes"), "%s", text);
    free(text);
}

Test(config, what_nothing_comes_of_is_not_named_unasked)
{
    char *text;

    setenv("RONDO_LOG", "warn", 1);
    text = run_captured(&(struct client_world){.size = 2, .apart = true}, config_fills_all);
    cr_expect(!strstr(text, "splitShare"), "%s", text);
    free(text);
}

static bool sum_up(struct client *client)
{
    return sums_up(client, client->comm);
}

/* The second communicator of Rondo, for parts, has host memory only. */
Test(config, a_communicator_takes_its_device_once)
{
    char *text;

    if (!client_on_device())
        cr_skip_test("host memory has no device");
    setenv("RONDO_LOG", "info", 1);
    text = run_captured(&(struct client_world){.size = 2}, sum_up);
    cr_expect_eq(count_of(text, "works on CUDA device"), 2, "%s", text);
    free(text);
}

Test(config, a_name_is_in_the_sentences_of_a_communicator)
{
    run(&(struct client_world){.size = 2, .processes = true, .apart = true},
        config_names_a_communicator);
}

Test(config, a_traffic_class_is_on_every_socket_of_a_communicator)
{
    setenv("RONDO_TRANSPORT", "tcp", 1);
    run(&(struct client_world){.size = 2, .processes = true}, config_marks_packets);
}

Test(config, a_network_that_is_not_there_is_refused)
{
    run(&(struct client_world){.size = 1, .apart = true}, config_takes_one_network);
}

/* The fewest and the most blocks of the kernels of a call. */
static struct blocks_wanted blocks_of(bool processes, int least, int most, size_t count)
{
    struct blocks_wanted wanted = {.least = least, .most = most, .count = count};
    struct blocks_wanted found = {.least = 1 << 30};
    char *text =
        run_captured(&(struct client_world){.size = 2, .processes = processes, .argument = &wanted},
                     config_counts_blocks);
    int blocks;

    for (const char *at = strstr(text, "from here"); at && (at = strstr(at, "kernel ")); at++)
        if (sscanf(at, "kernel %*s of %d blocks", &blocks) == 1) {
            found.least = blocks < found.least ? blocks : found.least;
            found.most = blocks > found.most ? blocks : found.most;
        }
    cr_assert(found.most > 0, "no kernel: %s", text);
    free(text);
    return found;
}

enum { SHORT = 4, LONG = 1 << 18, MOST = 6, LEAST = 7 };

static void check_blocks(bool processes)
{
    if (!client_on_device())
        cr_skip_test("kernels are of the device");
    setenv("RONDO_LOG", "debug", 1);
    cr_expect(blocks_of(processes, 0, 0, LONG).most > MOST);
    cr_expect(blocks_of(processes, 0, MOST, LONG).most <= MOST);
    cr_expect(blocks_of(processes, 0, 0, SHORT).least < LEAST);
    cr_expect(blocks_of(processes, LEAST, 0, SHORT).least >= LEAST);
}

Test(config, ctas_are_blocks_of_kernels_that_wait_for_each_other)
{
    check_blocks(false);
}

Test(config, ctas_are_blocks_of_kernels_of_processes)
{
    check_blocks(true);
}
