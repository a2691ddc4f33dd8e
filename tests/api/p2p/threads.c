/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.c - several threads of a rank wait for messages, each for one. */
#include "tests/api/p2p/p2p.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 6, LONGEST = 100000 };

struct waiting {
    pthread_t thread;
    rondo_transfer *transfer;
    rondo_result result;
    rondo_envelope found;
    char memory[LONGEST];
};

/* Bytes of the message with a tag: from none to one with an offer. */
static size_t length_of(int tag)
{
    return (size_t)tag * (LONGEST / (THREADS - 1));
}

static void *wait_for_one(void *argument)
{
    struct waiting *self = argument;

    self->result = rondo_transfer_wait(self->transfer, -1, &self->found);
    return NULL;
}

static rondo_result check(const struct waiting *waiting, int source, int tag, char *sentence)
{
    size_t right = 0;

    if (waiting->result)
        return world_say(sentence, waiting->result, "tag %d: %s", tag,
                         rondo_result_string(waiting->result));
    while (right < length_of(tag) && waiting->memory[right] == (char)(source + tag + (int)right))
        right++;
    if (waiting->found.tag == tag && waiting->found.source == source &&
        waiting->found.bytes == length_of(tag) && right == length_of(tag))
        return RONDO_OK;
    return world_say(sentence, RONDO_ERROR_INTERNAL, "tag %d from %d: byte %zu of %zu is wrong",
                     waiting->found.tag, waiting->found.source, right, waiting->found.bytes);
}

static rondo_result send_all(rondo_p2p *p2p, int rank, int size)
{
    static _Thread_local char message[LONGEST];
    rondo_result result = RONDO_OK;

    for (int tag = 0; tag < THREADS && !result; tag++) {
        rondo_transfer *transfer;

        for (size_t i = 0; i < length_of(tag); i++)
            message[i] = (char)(rank + tag + (int)i);
        result = rondo_p2p_send(p2p, message, length_of(tag), (rank + 1) % size, tag, &transfer);
        if (!result)
            result = rondo_transfer_wait(transfer, -1, NULL);
        if (!result)
            rondo_transfer_close(transfer);
    }
    return result;
}

rondo_result p2p_wait_by_threads(rondo_comm *comm, void *argument, char *sentence)
{
    static _Thread_local struct waiting waiting[THREADS];
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), begun = 0;
    int before = (rank + size - 1) % size;
    rondo_p2p *p2p;
    rondo_result result = rondo_p2p_open(comm, &p2p);

    (void)argument;
    if (result)
        return result;
    for (; begun < THREADS && !result; begun += !result) {
        struct waiting *one = &waiting[begun];

        memset(one->memory, 0, sizeof(one->memory));
        result = rondo_p2p_recv(p2p, one->memory, LONGEST, before, begun, &one->transfer);
        if (!result && pthread_create(&one->thread, NULL, wait_for_one, one))
            result = world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    }
    if (!result)
        result = send_all(p2p, rank, size);
    else
        rondo_p2p_abort(p2p);
    for (int tag = 0; tag < begun; tag++) {
        pthread_join(waiting[tag].thread, NULL);
        result = result ? result : check(&waiting[tag], before, tag, sentence);
        rondo_transfer_close(waiting[tag].transfer);
    }
    rondo_p2p_close(p2p);
    return result;
}
