/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.h - hardware channels: the few queues of a device that all streams of a context share.
 *
 * An operation has a ticket, which enters the channel of its stream at the call and leaves it when
 * the device may turn to the next one: with its beginning where it runs by itself then (kernels,
 * copies), with its end where the channel waits for it (a word, an event, a function of the host).
 * So whatever is not ready to begin holds up all that entered behind it, whichever stream that is
 * of: CUDA_DEVICE_MAX_CONNECTIONS (1 to 32, by default 8) says how many channels there are, for
 * each priority of streams. With CUDA_STANDIN_CHANNELS=0 there are none, and streams do not wait.
 *
 * Tickets can't wait for each other in a circle: an operation depends on others that entered
 * earlier. But what waits for a word that something behind it will write waits forever.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>

enum { CHANNEL_PRIORITIES = 6, CHANNEL_LIMIT = 32 };

struct ticket {
    struct ticket *next; /* behind it */
};

struct channel {
    struct ticket *first, **last;
    pthread_cond_t moved; /* there is another first ticket */
    unsigned waiters;
};

/* Those of a context: a set for each priority. */
struct channels {
    struct channel of[CHANNEL_PRIORITIES][CHANNEL_LIMIT];
    unsigned streams[CHANNEL_PRIORITIES]; /* so many got a channel until now, one after the other */
};

/* All under the lock. */
void channel_init(struct channels *channels);

/* The number of the channel for another stream of that priority (0 to -5). */
unsigned channel_choose(struct channels *channels, int priority);

/* The channel of that number, which may be too large: they are counted in a circle. NULL, which the
 * functions below take, where streams have none. */
struct channel *channel_get(struct channels *channels, int priority, unsigned number);

void channel_enter(struct channel *channel, struct ticket *ticket);

/* Sleeps until the ticket is the first one. */
void channel_await(struct channel *channel, const struct ticket *ticket);

/* The first ticket goes. */
void channel_leave(struct channel *channel);
