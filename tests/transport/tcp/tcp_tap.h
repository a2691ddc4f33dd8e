/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_tap.h - somebody on the way between the ranks of tcp_nodes.h: every connection goes through a
 * tap, which sees all bytes, and may change, repeat, swap, replace or cut them.
 */
#ifndef RONDO_TESTS_TCP_TAP_H
#define RONDO_TESTS_TCP_TAP_H

#include "tests/transport/tcp/tcp_nodes.h"

enum tap_deed {
    TAP_NOTHING,
    TAP_FLIP,    /* one bit */
    TAP_DROP,    /* some bytes never arrive */
    TAP_REPEAT,  /* some arrive twice */
    TAP_SWAP,    /* some arrive before as many that were sent before them */
    TAP_CUT,     /* the connection ends there, as if the sender had closed it */
    TAP_REPLAY,  /* instead of some come those of the connection of that number of the job before */
    TAP_REFLECT, /* instead of some come those that went the other way */
    TAP_DEEDS
};

struct tap_plan {
    enum tap_deed deed;
    int connection;  /* in the order of coming */
    bool back;       /* what the acceptor says */
    size_t at;       /* behind so many bytes of that direction */
    unsigned length; /* bytes; of a flip: which bit */
};

/* After nodes_open(), before anything is sent: ranks dial the tap. The deed is done once. */
void tap_open(const struct tap_plan *plan);
/* Bytes that came by are kept for TAP_REPLAY, and forgotten at the end of the next job. */
void tap_close(void);
bool tap_done(void);
/* Carry what there is; true if there was something. */
bool tap_work(void);
size_t tap_carried(int connection, bool back);
/* True if these 16 bytes came by. */
bool tap_saw(const unsigned char sixteen[16]);

#endif
