/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.c - see messages.h. */
#include "messages.h"

#include <stdlib.h>
#include <string.h>

enum { LONG = 128 << 10, LONGEST = 3 * LONG + 77, OFFSET = 100, ROUNDS = 45 };

enum kind { PLAIN, HEAP, REGISTERED, KINDS };

struct buffer {
    enum kind kind;
    char *base, *at;
    rondo_registration *registration;
};

static rondo_result open_buffer(rondo_comm *comm, enum kind kind, struct buffer *buffer)
{
    void *memory = NULL;
    rondo_result result = RONDO_OK;

    *buffer = (struct buffer){.kind = kind};
    if (kind == HEAP)
        result = rondo_mem_alloc(LONGEST + OFFSET, &memory);
    else
        memory = malloc(LONGEST + OFFSET);
    if (!memory)
        return result ? result : RONDO_ERROR_MEMORY;
    buffer->base = memory;
    buffer->at = buffer->base + OFFSET;
    if (kind == REGISTERED)
        result = rondo_comm_register(comm, buffer->at, LONGEST, &buffer->registration);
    return result;
}

static void close_buffer(rondo_comm *comm, struct buffer *buffer)
{
    if (buffer->registration)
        rondo_comm_deregister(comm, buffer->registration);
    if (buffer->kind == HEAP)
        rondo_mem_free(buffer->base);
    else
        free(buffer->base);
}

static struct world_data data_of(int round)
{
    return (struct world_data){RONDO_UINT8, WORLD_MOVED, WORLD_RANKS, (uint64_t)round};
}

static rondo_result exchange(rondo_comm *comm, const struct buffer *input,
                             const struct buffer *output, size_t bytes)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(input->at, bytes, RONDO_UINT8, (rank + 1) % size, comm, NULL);
    if (!result)
        result = rondo_recv(output->at, bytes, RONDO_UINT8, (rank + size - 1) % size, comm, NULL);
    return result ? result : rondo_group_end();
}

/* The input is overwritten as soon as the call allows it. */
static rondo_result go_round_once(rondo_comm *comm, const struct buffer *input,
                                  const struct buffer *output, size_t bytes, int round,
                                  char *sentence)
{
    struct world_data data = data_of(round);
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    rondo_result result;

    world_fill(&data, rank, bytes, input->at);
    memset(output->at, 0xa5, bytes);
    result = exchange(comm, input, output, bytes);
    memset(input->at, 0x5a, bytes);
    if (result)
        return world_say(sentence, result, "round %d of %zu bytes: %s", round, bytes,
                         rondo_last_error(comm));
    return world_check_moved(&data, (rank + size - 1) % size, 0, bytes, output->at, sentence)
               ? RONDO_OK
               : RONDO_ERROR_INTERNAL;
}

static rondo_result go_round(rondo_comm *comm, enum kind input_kind, enum kind output_kind,
                             char *sentence)
{
    static const size_t lengths[] = {LONG - 1, LONG, LONG + 1, LONGEST};
    struct buffer input = {0}, output = {0};
    rondo_result result = open_buffer(comm, input_kind, &input);

    if (!result)
        result = open_buffer(comm, output_kind, &output);
    if (result)
        world_say(sentence, result, "buffers: %s", rondo_last_error(comm));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int round = 0; round < ROUNDS && !result; round++)
            result = go_round_once(comm, &input, &output, lengths[i], round, sentence);
    close_buffer(comm, &output);
    close_buffer(comm, &input);
    return result;
}

rondo_result messages_go_round(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = RONDO_OK;
    int rank = rondo_comm_rank(comm);

    (void)argument;
    for (int input = 0; input < KINDS && !result; input++)
        result = go_round(comm, (enum kind)input, HEAP, sentence);
    if (!result)
        result = go_round(comm, HEAP, REGISTERED, sentence);
    /* Neighbours differ in what they have. */
    if (!result)
        result =
            go_round(comm, (enum kind)(rank % KINDS), (enum kind)((rank + 1) % KINDS), sentence);
    return result;
}

/* ---- Several at once ------------------------------------------------------------------------- */

enum { PIECE = LONG + 1 }; /* of a buffer, two of which fit */

static rondo_result call_several(rondo_comm *comm, char *input, char *output, char *gathered)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    rondo_result result = rondo_group_start();

    for (size_t i = 0; i < 2 && !result; i++) {
        result = rondo_send(input + i * PIECE, PIECE, RONDO_UINT8, right, comm, NULL);
        if (!result)
            result = rondo_recv(output + i * PIECE, PIECE, RONDO_UINT8, left, comm, NULL);
    }
    if (!result)
        result = rondo_all_gather(input, gathered, LONG, RONDO_UINT8, comm, NULL);
    return result ? result : rondo_group_end();
}

static bool several_are_right(const rondo_comm *comm, int round, const char *output,
                              const char *gathered, char *sentence)
{
    struct world_data data = data_of(round);
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    bool right =
        world_check_moved(&data, (rank + size - 1) % size, 0, 2 * (size_t)PIECE, output, sentence);

    for (int r = 0; r < size && right; r++)
        right = world_check_moved(&data, r, 0, LONG, gathered + (size_t)r * LONG, sentence);
    return right;
}

rondo_result messages_beside_a_collective(rondo_comm *comm, void *argument, char *sentence)
{
    size_t bytes = 2 * (size_t)PIECE, all = (size_t)rondo_comm_size(comm) * LONG;
    void *memory = NULL;
    char *input, *output, *gathered;
    rondo_result result = rondo_mem_alloc(2 * bytes + all, &memory);

    (void)argument;
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    input = memory;
    output = input + bytes;
    gathered = output + bytes;
    for (int round = 0; round < ROUNDS && !result; round++) {
        struct world_data data = data_of(round);

        world_fill(&data, rondo_comm_rank(comm), bytes, input);
        memset(output, 0xa5, bytes + all);
        result = call_several(comm, input, output, gathered);
        if (result)
            world_say(sentence, result, "round %d: %s", round, rondo_last_error(comm));
        else if (!several_are_right(comm, round, output, gathered, sentence))
            result = RONDO_ERROR_INTERNAL;
        if (!result)
            result = rondo_barrier(comm, NULL); /* all have looked at what they got */
    }
    rondo_mem_free(memory);
    return result;
}

/* ---- One message ----------------------------------------------------------------------------- */

/* From even ranks to the next odd ones. */
static rondo_result send_once(rondo_comm *comm, const struct buffer *buffer, int round,
                              char *sentence)
{
    struct world_data data = data_of(round);
    int rank = rondo_comm_rank(comm), peer = rank ^ 1;
    rondo_result result;

    if (peer >= rondo_comm_size(comm))
        return RONDO_OK;
    if (rank % 2) {
        result = rondo_recv(buffer->at, LONGEST, RONDO_UINT8, peer, comm, NULL);
    } else {
        world_fill(&data, rank, LONGEST, buffer->at);
        result = rondo_send(buffer->at, LONGEST, RONDO_UINT8, peer, comm, NULL);
    }
    if (result)
        return world_say(sentence, result, "round %d: %s", round, rondo_last_error(comm));
    return rank % 2 == 0 || world_check_moved(&data, peer, 0, LONGEST, buffer->at, sentence)
               ? RONDO_OK
               : RONDO_ERROR_INTERNAL;
}

rondo_result messages_before_closing(rondo_comm *comm, void *argument, char *sentence)
{
    struct buffer buffer = {0};
    rondo_result result = open_buffer(comm, HEAP, &buffer);

    (void)argument;
    for (int round = 0; round < ROUNDS && !result; round++) {
        rondo_comm *own = NULL;

        result = rondo_comm_dup(comm, &own);
        if (!result)
            result = send_once(own, &buffer, round, sentence);
        rondo_comm_close(own);
    }
    world_say(sentence, result, "%s", rondo_last_error(comm));
    close_buffer(comm, &buffer);
    return result;
}

rondo_result messages_to_oneself(rondo_comm *comm, void *argument, char *sentence)
{
    struct buffer input = {0}, output = {0};
    struct world_data data = data_of(0);
    int rank = rondo_comm_rank(comm);
    rondo_result result = RONDO_OK;

    (void)argument;
    for (int kind = 0; kind < KINDS && !result; kind++) {
        result = open_buffer(comm, (enum kind)kind, &input);
        if (!result)
            result = open_buffer(comm, (enum kind)kind, &output);
        for (int round = 0; round < 3 && !result; round++) {
            world_fill(&data, rank, LONGEST, input.at);
            memset(output.at, 0xa5, LONGEST);
            result = rondo_group_start();
            if (!result)
                result = rondo_send(input.at, LONGEST, RONDO_UINT8, rank, comm, NULL);
            if (!result)
                result = rondo_recv(output.at, LONGEST, RONDO_UINT8, rank, comm, NULL);
            if (!result)
                result = rondo_group_end();
            if (!result && !world_check_moved(&data, rank, 0, LONGEST, output.at, sentence))
                result = RONDO_ERROR_INTERNAL;
        }
        world_say(sentence, result, "%s", rondo_last_error(comm));
        close_buffer(comm, &output);
        close_buffer(comm, &input);
    }
    return result;
}

rondo_result messages_in_pieces(rondo_comm *comm, void *argument, char *sentence)
{
    const size_t bytes = 2 * (64 << 20) + 3; /* of a message, 64 MiB are read at once */
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    struct world_data data = data_of(0);
    void *input = NULL, *output = NULL;
    rondo_result result = rondo_mem_alloc(bytes, &input);

    (void)argument;
    if (!result)
        result = rondo_mem_alloc(bytes, &output);
    if (!result) {
        world_fill(&data, rank, bytes, input);
        result =
            exchange(comm, &(struct buffer){.at = input}, &(struct buffer){.at = output}, bytes);
    }
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    else if (!world_check_moved(&data, (rank + size - 1) % size, 0, bytes, output, sentence))
        result = RONDO_ERROR_INTERNAL;
    rondo_mem_free(input);
    rondo_mem_free(output);
    return result;
}

/* ---- Failing --------------------------------------------------------------------------------- */

rondo_result messages_given_up(rondo_comm *comm, void *argument, char *sentence)
{
    struct buffer buffer = {0};
    rondo_result result = open_buffer(comm, HEAP, &buffer), given_up = RONDO_OK;
    int rank = rondo_comm_rank(comm);

    (void)argument;
    if (!result && rank == 0) {
        given_up = rondo_send(buffer.at, LONGEST, RONDO_UINT8, 1, comm, NULL);
        memset(buffer.at, 0x5a, LONGEST);
    } else if (!result) {
        while (!rondo_comm_query(comm)) { /* until the sender's failure shows */
        }
        given_up = rondo_recv(buffer.at, LONGEST, RONDO_UINT8, 0, comm, NULL);
    }
    if (!result && given_up != RONDO_ERROR_TIMEOUT)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "rank %d: %s, \"%s\"", rank,
                           rondo_result_string(given_up), rondo_last_error(comm));
    close_buffer(comm, &buffer);
    return result ? result : given_up;
}
