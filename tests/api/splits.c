/* SPDX-License-Identifier: BSD-3-Clause */
/* splits.c - communicators made of communicators. */
#include "bodies.h"

#include <pthread.h>

/* Ranks of the members of `part` in `comm`, by gathering them; each must be where `wanted` says. */
static rondo_result check_members(rondo_comm *comm, rondo_comm *part, int size,
                                  const int32_t *wanted, char *sentence)
{
    int32_t mine = rondo_comm_rank(comm), found[WORLD_RANKS];
    rondo_result result;

    if (rondo_comm_size(part) != size)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "the part has %d ranks, not %d",
                         rondo_comm_size(part), size);
    result = rondo_all_gather(&mine, found, 1, RONDO_INT32, part, NULL);
    if (result)
        return world_say(sentence, result, "all_gather: %s", rondo_last_error(part));
    for (int r = 0; r < size; r++)
        if (found[r] != wanted[r])
            return world_say(sentence, RONDO_ERROR_INTERNAL,
                             "rank %d of the part is old rank %d, not %d", r, found[r], wanted[r]);
    return bodies_all_reduce(part, 12345, sentence);
}

static rondo_result end(rondo_comm *comm, rondo_comm *part, rondo_result result, char *sentence)
{
    if (result)
        world_say(sentence, result, "split: %s", rondo_last_error(comm));
    if (!result && part)
        result = rondo_comm_finalize(part);
    rondo_comm_close(part);
    if (!result)
        result = bodies_all_reduce(comm, 99, sentence); /* the old one still works */
    return result;
}

rondo_result splits_odd_and_even(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), members = 0;
    int32_t wanted[WORLD_RANKS];
    rondo_comm *part = NULL;
    rondo_result result = rondo_comm_split(comm, rank % 2, 0, NULL, &part);

    for (int r = rank % 2; r < size; r += 2)
        wanted[members++] = r;
    if (!result)
        result = check_members(comm, part, members, wanted, sentence);
    return end(comm, part, result, sentence);
}

/* Keys count down, and every third rank stays out. */
rondo_result splits_reverse_and_leave_out(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), members = 0;
    bool out = rank % 3 == 2;
    int32_t wanted[WORLD_RANKS];
    rondo_comm *part = NULL;
    rondo_result result = rondo_comm_split(comm, out ? -1 : 5, -rank, NULL, &part);

    for (int r = size - 1; r >= 0; r--)
        if (r % 3 != 2)
            wanted[members++] = r;
    if (!result && out && part)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "a rank with color -1 got a part");
    if (!result && !out)
        result = check_members(comm, part, members, wanted, sentence);
    return end(comm, part, result, sentence);
}

rondo_result splits_nest(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    int half = rank < (size + 1) / 2 ? 0 : 1;
    rondo_comm *part = NULL, *quarter = NULL;
    rondo_result result = rondo_comm_split(comm, half, rank, NULL, &part);

    if (!result)
        result = rondo_comm_split(part, rondo_comm_rank(part) % 2, rank, NULL, &quarter);
    for (int i = 0; i < 5 && !result; i++) {
        result = bodies_all_reduce(quarter, 1000, sentence);
        if (!result)
            result = bodies_all_reduce(part, 1000, sentence);
        if (!result)
            result = bodies_all_reduce(comm, 1000, sentence);
    }
    if (!result)
        result = rondo_comm_finalize(quarter);
    rondo_comm_close(quarter);
    return end(comm, part, result, sentence);
}

/* Even ranks use the copy first, odd ranks the original: in streams that is no deadlock. */
rondo_result splits_dup_has_its_own_order(rondo_comm *comm, void *argument, char *sentence)
{
    int32_t a = 1, b = 2, size = rondo_comm_size(comm);
    bool even = rondo_comm_rank(comm) % 2 == 0;
    rondo_comm *copy = NULL;
    rondo_stream *first = NULL, *second = NULL;
    rondo_result result = rondo_comm_dup(comm, &copy);

    if (!result && !(result = rondo_stream_open(&first)))
        result = rondo_stream_open(&second);
    if (!result)
        result = rondo_all_reduce(even ? &b : &a, even ? &b : &a, 1, RONDO_INT32, RONDO_SUM,
                                  even ? copy : comm, even ? second : first);
    if (!result)
        result = rondo_all_reduce(even ? &a : &b, even ? &a : &b, 1, RONDO_INT32, RONDO_SUM,
                                  even ? comm : copy, even ? first : second);
    if (!result && !(result = rondo_stream_synchronize(first)))
        result = rondo_stream_synchronize(second);
    if (!result && (a != size || b != 2 * size))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "sums are %d and %d", a, b);
    rondo_stream_close(first);
    rondo_stream_close(second);
    return end(comm, copy, result, sentence);
}

/* ---- Several threads ------------------------------------------------------------------------- */

enum { THREADS = 3, DUPS = 5 };

struct user {
    rondo_comm *comm;
    rondo_result result;
    char sentence[WORLD_SENTENCE];
};

static void *dup_and_use(void *argument)
{
    struct user *user = argument;

    for (int i = 0; i < DUPS && !user->result; i++) {
        rondo_comm *copy = NULL;

        user->result = rondo_comm_dup(user->comm, &copy);
        if (user->result)
            world_say(user->sentence, user->result, "dup: %s", rondo_last_error(user->comm));
        else
            user->result = bodies_all_reduce(copy, 10, user->sentence);
        rondo_comm_close(copy);
    }
    return NULL;
}

rondo_result splits_by_several_threads(rondo_comm *comm, void *argument, char *sentence)
{
    struct user users[THREADS] = {{.comm = comm}};
    pthread_t threads[THREADS];
    rondo_result result = RONDO_OK;

    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.comm = comm};
        if (pthread_create(&threads[i], NULL, dup_and_use, &users[i]))
            return world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (users[i].result)
            result = world_say(sentence, users[i].result, "%s", users[i].sentence);
    }
    return result;
}
