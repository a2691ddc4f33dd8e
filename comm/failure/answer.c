/* SPDX-License-Identifier: BSD-3-Clause */
/* answer.c - see answer.h. */
#include "comm/failure/answer.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "comm/failure/network.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct answerer {
    rondo_comm *comm;
    pthread_t thread;
    int stop; /* an eventfd that becomes readable */
};

/* Lets the networks move on, once; what they say of ranks that have ended is for those who wait. */
static bool look(rondo_comm *comm)
{
    bool moved = false;
    unsigned ticket;

    if (!turn_take_idle(&comm->turn, &ticket))
        return false;
    networks_look(&comm->networks, 1, &moved);
    turn_pass(&comm->turn);
    return moved;
}

static void *answer(void *argument)
{
    struct answerer *answerer = argument;
    struct pollfd stop = {.fd = answerer->stop, .events = POLLIN};
    int pause = LOOK_SERVE_MS;

    while (poll(&stop, 1, pause) <= 0) {
        if (look(answerer->comm))
            pause = LOOK_SERVE_MS;
        else if (pause < LOOK_SERVE_MOST_MS)
            pause++;
    }
    return NULL;
}

static struct answerer *start(rondo_comm *comm)
{
    struct answerer *answerer = calloc(1, sizeof(*answerer));

    if (!answerer)
        return NULL;
    answerer->comm = comm;
    answerer->stop = descriptor_above(eventfd(0, EFD_CLOEXEC));
    if (answerer->stop >= 0 && !pthread_create(&answerer->thread, NULL, answer, answerer))
        return answerer;
    if (answerer->stop >= 0)
        close(answerer->stop);
    free(answerer);
    return NULL;
}

bool answer_start(rondo_comm *comm)
{
    struct answerer *answerer;

    if (!networks_any(comm) || !comm_is_assembled(comm))
        return false;
    if (atomic_exchange_explicit(&comm->answers, true, memory_order_acq_rel))
        return true;
    answerer = start(comm);
    /* Release, pairs with the acquire in answer_stop(). */
    atomic_store_explicit(&comm->answerer, answerer, memory_order_release);
    return answerer;
}

void answer_stop(rondo_comm *comm)
{
    struct answerer *answerer = atomic_load_explicit(&comm->answerer, memory_order_acquire);

    if (!answerer)
        return;
    eventfd_write(answerer->stop, 1);
    pthread_join(answerer->thread, NULL);
    close(answerer->stop);
    free(answerer);
    atomic_store_explicit(&comm->answerer, NULL, memory_order_relaxed);
}
