/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_verbs.h - an adapter that exists only in this process: enough of libibverbs for reliable
 * connections, RDMA writes and immediates, with every freedom that a real one has.
 *
 * Nothing moves but in fake_verbs_move(), which takes the writes under way in any order, eight
 * bytes at a time; an immediate completes only when all writes before it are in place. Failures
 * are made on demand, and objects are counted.
 */
#ifndef RONDO_TESTS_FAKE_VERBS_H
#define RONDO_TESTS_FAKE_VERBS_H

#include "transport/verbs/calls.h"

#include <stdbool.h>

struct fake_verbs {
    int fail_registrations; /* so many reg_mr fail after the next `allowed` */
    int allowed;
    unsigned closed;         /* devices (bits) that cannot be opened, */
    unsigned down, moved;    /* whose port is not active, has another address */
    bool fail_queues;        /* create_qp fails */
    bool fail_connects;      /* no queue is made ready to receive */
    unsigned inlined;        /* bytes of inline data, more of which create_qp refuses */
    enum ibv_wc_status fate; /* IBV_WC_SUCCESS, or what becomes of all writes from now on */
    int events;              /* that are waiting to be read, all of this kind: */
    enum ibv_event_type event;
    int event_port;        /* 0: 1 */
    int moves_when_polled; /* words that arrive whenever completions are looked at */
    int prepared;          /* for forks, before any device is opened */
    int living;            /* contexts, domains, queues, memory */
    int registered;        /* memory only */
    bool no_dmabuf;        /* its driver knows nothing of it */
    size_t dmabuf_room;    /* bytes of files that it can register; begins as very many */
    bool astray;           /* what is registered by a file is a copy of it */
    unsigned long writes, immediates, out_of_order;
    unsigned char traffic_class; /* that queues are to have; networks that open ask for it */
    unsigned long marked;        /* queues that have it */
    bool routed;                 /* ports want a global header in all packets */
    unsigned long global;        /* queues whose packets have one */
    int partition;               /* index of the last queue's */
};
extern struct fake_verbs fake;

/* `devices` ports of Ethernet, described in a folder that is made; undone by close. */
void fake_verbs_open(int devices);
/* Opens devices with hardware behind them; the others look as soft-RoCE does. */
void fake_verbs_open_hard(int devices);
void fake_verbs_close(void);
/* Let so many words of the writes under way arrive, chosen at random. */
void fake_verbs_move(int words);
/* Everything that is under way. */
void fake_verbs_settle(void);

#endif
