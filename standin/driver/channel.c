/* SPDX-License-Identifier: BSD-3-Clause */
#include "standin/driver/channel.h"

#include "standin/driver/base/call.h"

#include <stdlib.h>

static unsigned connections(void)
{
    if (!call_setting("CHANNELS", 1))
        return 0;
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    unsigned long wanted = text ? strtoul(text, NULL, 10) : 0;
    return wanted >= 1 && wanted <= CHANNEL_LIMIT ? (unsigned)wanted : 8;
}

void channel_init(struct channels *channels)
{
    for (int priority = 0; priority < CHANNEL_PRIORITIES; priority++) {
        for (int i = 0; i < CHANNEL_LIMIT; i++) {
            struct channel *channel = &channels->of[priority][i];
            channel->last = &channel->first;
            pthread_cond_init(&channel->moved, NULL);
        }
    }
}

unsigned channel_choose(struct channels *channels, int priority)
{
    return channels->streams[-priority]++;
}

struct channel *channel_get(struct channels *channels, int priority, unsigned number)
{
    static bool known; /* read once: it can't change while tickets are on their way */
    static unsigned count;
    if (!known)
        count = connections();
    known = true;
    return count ? &channels->of[-priority][number % count] : NULL;
}

void channel_enter(struct channel *channel, struct ticket *ticket)
{
    ticket->next = NULL;
    if (!channel)
        return;
    *channel->last = ticket;
    channel->last = &ticket->next;
}

void channel_await(struct channel *channel, const struct ticket *ticket)
{
    if (!channel)
        return;
    channel->waiters++;
    while (channel->first != ticket)
        call_wait(&channel->moved);
    channel->waiters--;
}

void channel_leave(struct channel *channel)
{
    if (!channel)
        return;
    channel->first = channel->first->next;
    if (!channel->first)
        channel->last = &channel->first;
    if (channel->waiters)
        pthread_cond_broadcast(&channel->moved);
}
