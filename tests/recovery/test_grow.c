/* SPDX-License-Identifier: BSD-3-Clause */
/* test_grow.c - newcomers join members, or all are told why not. */
#include "cases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* ---- Newcomers ------------------------------------------------------------------------------- */

/* The last ranks of the world are newcomers to a communicator of the others. */
struct newcomers {
    int count;
    bool member_grows; /* the member that is killed has begun to grow, too */
    atomic_int came;
    atomic_int killed; /* the process of that member, once it is about to be; 0: not yet */
};

static rondo_result share_id(rondo_comm *world, rondo_unique_id *id)
{
    rondo_result result = RONDO_OK;

    if (rondo_comm_rank(world) == 0)
        result = rondo_unique_id_create(id);
    return result ? result : rondo_broadcast(id, id, sizeof(*id), RONDO_UINT8, 0, world, NULL);
}

static rondo_result grow(rondo_comm *world, void *argument, char *sentence)
{
    const struct newcomers *newcomers = argument;
    int size = rondo_comm_size(world), rank = rondo_comm_rank(world);
    bool new = rank >= size - newcomers->count;
    rondo_comm *members = NULL, *grown = NULL;
    rondo_unique_id id;
    rondo_result result = rondo_comm_split(world, new ? -1 : 0, 0, NULL, &members);

    if (!result)
        result = share_id(world, &id);
    if (!result)
        result = rondo_comm_grow(members, &id, size, new ? rank : -1, NULL, &grown);
    if (!result && (rondo_comm_rank(grown) != rank || rondo_comm_size(grown) != size))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "rank %d", rondo_comm_rank(grown));
    if (!result)
        result = all_reduce_ones(grown, size, sentence);
    if (!result && members)
        result = all_reduce_ones(members, size - newcomers->count, sentence);
    if (!result)
        result = rondo_comm_agree(grown, NULL, NULL, NULL);
    world_say(sentence, result, "%s", rondo_last_error(NULL));
    rondo_comm_close(grown);
    rondo_comm_close(members);
    return result;
}

Test(grow, newcomers_join_and_members_keep_their_ranks, .timeout = 100)
{
    static const struct {
        int size, newcomers;
    } cases[] = {{2, 1}, {5, 2}, {4, 0}, {7, 6}};
    struct world_report report;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int k = 0; k < 3; k++) {
            struct newcomers newcomers = {.count = cases[i].newcomers};

            cr_expect(!recovery_run(cases[i].size, k > 0, k == 2 ? "tcp" : "auto", 20, grow,
                                    &newcomers, &report),
                      "%d ranks, %d: %s", cases[i].size, k, report.summary);
        }
}

/* Rank 1 calls it wrongly: nobody waits for it, and its next agreement is everybody's next one. */
static rondo_result grow_wrongly(rondo_comm *world, void *argument, char *sentence)
{
    const struct newcomers *newcomers = argument;
    int size = rondo_comm_size(world), rank = rondo_comm_rank(world);
    bool new = rank >= size - newcomers->count;
    rondo_result wanted = rank == 1 ? RONDO_ERROR_INVALID : RONDO_ERROR_PEER, result;
    rondo_comm *members = NULL, *grown = NULL;
    rondo_unique_id id;

    result = rondo_comm_split(world, new ? -1 : 0, 0, NULL, &members);
    if (!result)
        result = share_id(world, &id);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(NULL));
    result = rondo_comm_grow(members, &id, rank == 1 ? 1 : size, new ? rank : -1, NULL, &grown);
    if (result != wanted || grown)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result, rondo_last_error(NULL));
    result = members ? rondo_comm_agree(members, NULL, NULL, NULL) : RONDO_OK;
    if (!result && members)
        result = all_reduce_ones(members, size - newcomers->count, sentence);
    world_say(sentence, result, "%s", rondo_last_error(NULL));
    rondo_comm_close(members);
    return result;
}

Test(grow, a_member_that_cannot_grow_says_so_to_all, .timeout = 100)
{
    struct newcomers newcomers = {.count = 1};
    struct world_report report;

    cr_expect(!recovery_run(4, false, "auto", 20, grow_wrongly, &newcomers, &report), "%s",
              report.summary);
    cr_expect(!recovery_run(3, true, "tcp", 20, grow_wrongly, &newcomers, &report), "%s",
              report.summary);
}

static void *end_when_it_waits(void *argument)
{
    struct newcomers *newcomers = argument;

    world_await_rank(1);
    atomic_store_explicit(&newcomers->killed, getpid(), memory_order_release);
    raise(SIGKILL);
    return NULL;
}

static void wait_for_its_end(struct newcomers *newcomers)
{
    struct pollfd process = {.events = POLLIN};
    int pid;

    while (!(pid = atomic_load_explicit(&newcomers->killed, memory_order_acquire)))
        usleep(1000);
    process.fd = pidfd_open(pid, 0);
    if (process.fd >= 0) { /* else it has been waited for */
        poll(&process, 1, -1);
        close(process.fd);
    }
}

/* Rank 1 ends as newcomers are about to come, who come after that if rank 1 has begun to grow. */
static rondo_result grow_without_one(rondo_comm *world, void *argument, char *sentence)
{
    struct newcomers *newcomers = argument;
    int size = rondo_comm_size(world), rank = rondo_comm_rank(world);
    bool new = rank >= size - newcomers->count;
    rondo_comm *members = NULL, *grown = NULL;
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_unique_id id;
    uint64_t flags = 1;
    pthread_t thread;
    rondo_result result = rondo_comm_split(world, new ? -1 : 0, 0, NULL, &members);

    if (!result)
        result = share_id(world, &id);
    if (!result && !new) /* so that all members are there when newcomers are awaited */
        result = rondo_comm_agree(members, &flags, NULL, NULL);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(NULL));
    atomic_fetch_add_explicit(&newcomers->came, 1, memory_order_release);
    while (atomic_load_explicit(&newcomers->came, memory_order_acquire) < size)
        usleep(1000);
    world_will_wait(rank);
    if (rank == 1 && newcomers->member_grows)
        pthread_create(&thread, NULL, end_when_it_waits, newcomers);
    else if (rank == 1)
        raise(SIGKILL);
    if (new && newcomers->member_grows)
        wait_for_its_end(newcomers);
    config.timeout = new ? 2 : 20; /* if the meeting point is closed when they come */
    result = rondo_comm_grow(members, &id, size, new ? rank : -1, &config, &grown);
    if (new)
        return result == RONDO_ERROR_PEER || result == RONDO_ERROR_TIMEOUT ||
                       result == RONDO_ERROR_INVALID /* it found nobody there any more */
                   ? AS_EXPECTED
                   : world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result,
                               rondo_last_error(NULL));
    if (result != RONDO_ERROR_PEER || grown || !strstr(rondo_last_error(NULL), "ank 1"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result, rondo_last_error(NULL));
    result = rondo_comm_shrink(members, NULL, &grown);
    if (!result)
        result = all_reduce_ones(grown, size - newcomers->count - 1, sentence);
    rondo_comm_close(grown);
    return result ? result : AS_EXPECTED;
}

Test(grow, a_member_that_ends_while_newcomers_are_awaited_is_named_to_all, .timeout = 100)
{
    struct newcomers *newcomers = world_share(sizeof(*newcomers));
    struct world_report report;

    for (int k = 0; k < 4; k++) {
        newcomers->count = 2;
        newcomers->member_grows = k / 2;
        atomic_store_explicit(&newcomers->came, 0, memory_order_relaxed);
        atomic_store_explicit(&newcomers->killed, 0, memory_order_relaxed);
        recovery_run(5, true, k % 2 ? "tcp" : "auto", 20, grow_without_one, newcomers, &report);
        for (int rank = 0; rank < 5; rank++)
            cr_expect(rank == 1 || report.results[rank] == AS_EXPECTED, "%d, rank %d: %s", k, rank,
                      report.sentences[rank]);
    }
    world_unshare(newcomers, sizeof(*newcomers));
}
