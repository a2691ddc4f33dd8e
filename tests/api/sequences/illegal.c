/* SPDX-License-Identifier: BSD-3-Clause */
/* illegal.c - steps that are refused, in a sentence, and change nothing. */
#include "tests/api/bodies.h"
#include "tests/api/sequences/sequence.h"

#include <string.h>

enum { COUNT = 16, PATTERN = 0x5a5a5a5a };

static rondo_result complain(struct player *player, const char *what, rondo_result got)
{
    return world_say(player->sentence, RONDO_ERROR_INTERNAL, "%s gave %d: %s", what, (int)got,
                     rondo_last_error(NULL));
}

/* ---- Single calls ---------------------------------------------------------------------------- */

struct mistake {
    const char *what;
    rondo_result (*make)(rondo_comm *comm, int32_t *buffer);
};

static rondo_result reduce(rondo_comm *comm, const void *input, void *output, size_t count,
                           int type, int op)
{
    return rondo_all_reduce(input, output, count, (rondo_type)type, op, comm, NULL);
}

static rondo_result no_input(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, NULL, buffer, COUNT, RONDO_INT32, RONDO_SUM);
}

static rondo_result no_output(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, buffer, NULL, COUNT, RONDO_INT32, RONDO_SUM);
}

static rondo_result no_comm(rondo_comm *comm, int32_t *buffer)
{
    (void)comm;
    return reduce(NULL, buffer, buffer, COUNT, RONDO_INT32, RONDO_SUM);
}

static rondo_result no_type(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, buffer, buffer, COUNT, 99, RONDO_SUM);
}

static rondo_result no_operation(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, buffer, buffer, COUNT, RONDO_INT32, 55);
}

static rondo_result bits_of_floats(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, buffer, buffer, COUNT, RONDO_FLOAT32, RONDO_BXOR);
}

static rondo_result too_many(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, buffer, buffer, SIZE_MAX / 2, RONDO_INT32, RONDO_SUM);
}

static rondo_result overlap(rondo_comm *comm, int32_t *buffer)
{
    return reduce(comm, buffer, buffer + 1, COUNT - 1, RONDO_INT32, RONDO_SUM);
}

static rondo_result root_above(rondo_comm *comm, int32_t *buffer)
{
    return rondo_broadcast(buffer, buffer, COUNT, RONDO_INT32, rondo_comm_size(comm), comm, NULL);
}

static rondo_result root_below(rondo_comm *comm, int32_t *buffer)
{
    return rondo_reduce(buffer, buffer, COUNT, RONDO_INT32, RONDO_SUM, -1, comm, NULL);
}

static rondo_result peer_above(rondo_comm *comm, int32_t *buffer)
{
    return rondo_send(buffer, COUNT, RONDO_INT32, rondo_comm_size(comm), comm, NULL);
}

static rondo_result no_collective(rondo_comm *comm, int32_t *buffer)
{
    rondo_call call = {.struct_size = sizeof(call),
                       .collective = (rondo_collective)99,
                       .input = buffer,
                       .output = buffer,
                       .comm = comm};

    return rondo_collective_call(&call);
}

static rondo_result other_struct(rondo_comm *comm, int32_t *buffer)
{
    rondo_call call = {.struct_size = 8, .input = buffer, .output = buffer, .comm = comm};

    return rondo_collective_call(&call);
}

static rondo_result free_what_is_not_ours(rondo_comm *comm, int32_t *buffer)
{
    (void)comm;
    return rondo_mem_free(buffer);
}

static rondo_result register_nothing(rondo_comm *comm, int32_t *buffer)
{
    rondo_registration *registration;

    return rondo_comm_register(comm, buffer, 0, &registration);
}

static rondo_result deregister_nothing(rondo_comm *comm, int32_t *buffer)
{
    return rondo_comm_deregister(comm, (rondo_registration *)(void *)buffer);
}

static rondo_result end_no_group(rondo_comm *comm, int32_t *buffer)
{
    (void)comm;
    (void)buffer;
    return rondo_group_end();
}

static rondo_result split_below(rondo_comm *comm, int32_t *buffer)
{
    rondo_comm *made;

    (void)buffer;
    return rondo_comm_split(comm, -2, 0, NULL, &made);
}

static rondo_result destroy_no_operation(rondo_comm *comm, int32_t *buffer)
{
    (void)buffer;
    return rondo_op_destroy(comm, RONDO_SUM);
}

/* On one rank alone. */
static rondo_result make_mistakes(struct player *player)
{
    static const struct mistake mistakes[] = {
        {"no input", no_input},
        {"no output", no_output},
        {"no communicator", no_comm},
        {"no such type", no_type},
        {"no such operation", no_operation},
        {"bits of floats", bits_of_floats},
        {"more than memory", too_many},
        {"overlapping buffers", overlap},
        {"a root above", root_above},
        {"a root below", root_below},
        {"a peer above", peer_above},
        {"no such collective", no_collective},
        {"another struct", other_struct},
        {"freeing what is not ours", free_what_is_not_ours},
        {"registering nothing", register_nothing},
        {"deregistering nothing", deregister_nothing},
        {"ending no group", end_no_group},
        {"a split into less than none", split_below},
        {"destroying no operation", destroy_no_operation},
    };
    rondo_comm *comm = sequence_comm(player);
    int32_t buffer[COUNT];

    if (sequence_draw(player, 1, (unsigned)rondo_comm_size(comm)) !=
        (unsigned)rondo_comm_rank(comm))
        return RONDO_OK;
    memset(buffer, 0x5a, sizeof(buffer));
    for (unsigned i = 0; i < 6; i++) {
        const struct mistake *mistake =
            &mistakes[sequence_draw(player, 2 + i, sizeof(mistakes) / sizeof(mistakes[0]))];
        rondo_result result = mistake->make(comm, buffer);

        if (result != RONDO_ERROR_INVALID || strlen(rondo_last_error(NULL)) < 10)
            return complain(player, mistake->what, result);
    }
    for (int i = 0; i < COUNT; i++)
        if (buffer[i] != PATTERN)
            return complain(player, "a refused call has written, and", RONDO_OK);
    return RONDO_OK;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* A group with an error does nothing at all, and the next call is like any other. */
static rondo_result spoil_a_group(struct player *player)
{
    rondo_comm *comm = sequence_comm(player);
    bool first = sequence_draw(player, 1, 2);
    int32_t input[COUNT], output[COUNT];
    rondo_result result = rondo_group_start(), ended;

    memset(input, 1, sizeof(input));
    memset(output, 0x5a, sizeof(output));
    if (first)
        (void)no_type(comm, output);
    if (!result)
        result = reduce(comm, input, output, COUNT, RONDO_INT32, RONDO_SUM);
    if (!first)
        (void)root_above(comm, output);
    ended = rondo_group_end();
    if (result || ended != RONDO_ERROR_INVALID)
        return complain(player, "a group with an error", result ? result : ended);
    for (int i = 0; i < COUNT; i++)
        if (output[i] != PATTERN)
            return complain(player, "a call of a group with an error was made, and", RONDO_OK);
    return bodies_all_reduce(comm, COUNT, player->sentence);
}

/* A copy needs its result at once, so it is refused in a group. */
static rondo_result copy_in_a_group(struct player *player)
{
    rondo_comm *comm = sequence_comm(player), *made = NULL;
    int32_t buffer[COUNT] = {1};
    rondo_result result = rondo_group_start(), copied;

    if (!result)
        result = reduce(comm, buffer, buffer, COUNT, RONDO_INT32, RONDO_SUM);
    copied = rondo_comm_dup(comm, &made);
    (void)rondo_group_end();
    if (result || copied != RONDO_ERROR_INVALID || made)
        return complain(player, "a copy in a group", result ? result : copied);
    return bodies_all_reduce(comm, COUNT, player->sentence);
}

/* ---- Communicators that break ---------------------------------------------------------------- */

/* One rank calls something else on a copy; all of them hear of it, and the original is sound. */
static rondo_result differ(struct player *player)
{
    rondo_comm *comm = sequence_comm(player), *made = NULL;
    int size = rondo_comm_size(comm);
    bool other = (int)sequence_draw(player, 1, (unsigned)size) == rondo_comm_rank(comm);
    int32_t buffer[COUNT] = {1};
    rondo_result result = rondo_comm_dup(comm, &made), ended;

    if (!result)
        result = rondo_barrier(comm, NULL); /* who still makes the copy would hear of it there */
    if (result)
        return world_say(player->sentence, result, "%s", rondo_last_error(comm));
    ended = reduce(made, buffer, buffer, other ? COUNT - 1 : COUNT, RONDO_INT32, RONDO_SUM);
    for (int i = 0; i < 3 && !ended; i++)
        ended = rondo_barrier(made, NULL);
    if (size > 1 ? ended != RONDO_ERROR_MISMATCH : ended != RONDO_OK)
        result = complain(player, "a different call of one rank", ended);
    rondo_comm_close(made);
    return result ? result : bodies_all_reduce(comm, COUNT, player->sentence);
}

const struct step illegal_steps[] = {
    {"mistakes of one rank", make_mistakes},
    {"a group with an error", spoil_a_group},
    {"a copy in a group", copy_in_a_group},
    {"calls that differ", differ},
    {NULL, NULL},
};
