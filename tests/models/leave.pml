/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leave.pml - a call in which ranks read and write each other's memory, and any of them may fail at any time, as
 * comm/failure/leave.h has it.
 *
 * Every rank tells all others where its memory is, waits for theirs, sums up a part of all inputs into all outputs, and
 * tells the others that it is done. Whoever waits may give up instead: it marks its status page, rings the alarms, and waits
 * until nobody is inside, or exchanges the pages under its memory if that takes long; then its call has returned, and
 * its caller writes garbage over it. A rank that is stopped is one whose turn never comes; Spin tries all of that.
 *
 * Asserted: no store of a peer reaches memory whose owner's call has returned an error, and no result that is made of
 * garbage comes with RONDO_OK. A rank that waits for ever is a deadlock, which Spin finds by itself.
 *
 * PLAIN is memory that peers only read, by system calls: its pages cannot be exchanged, so who leaves returns in the
 * end, and peers may read garbage. THREADS are ranks of one process: who leaves waits as long as it takes.
 *
 * After its call every rank closes the communicator, as comm/failure/lease.c has it: it says so in memory of each peer, and on
 * its own status page. When each peer has said so in one of the two places, its memory is somebody else's. Asserted: nobody
 * stores there after that, neither the word of its closing nor a result.
 *
 *     holds: -DRANKS=2
 *     holds: -DRANKS=3
 *     holds: -DRANKS=2 -DPLAIN
 *     holds: -DRANKS=3 -DPLAIN
 *     holds: -DRANKS=3 -DTHREADS
 *     fails: -DRANKS=2 -DNO_WAIT          who leaves returns at once
 *     fails: -DRANKS=2 -DNO_EXCHANGE      ... or after a while, with its pages as they were
 *     fails: -DRANKS=2 -DNO_GATE          who goes inside does not look at its alarm
 *     fails: -DRANKS=2 -DGATE_FIRST       ... or looks before it says that it is inside
 *     fails: -DRANKS=2 -DPLAIN -DNO_LOOK  nobody looks at the alarm before it returns RONDO_OK
 *     fails: -DRANKS=2 -DPLAIN -DNO_ALARM who leaves does not ring
 *     fails: -DRANKS=2 -DCLOSED_FIRST     who closes says so on its status page before it has said so to all peers
 */
#define ALL(i) i : 0 .. RANKS - 1

bool told[RANKS];     /* its addresses are known to all */
byte done[RANKS];     /* ranks that have said that they are done with this one's memory */
bool alarm[RANKS], inside[RANKS];
bool returned[RANKS]; /* its call has returned an error: what its memory holds is the caller's business */
bool exchanged[RANKS];
bool tainted[RANKS];  /* its output has something in it that was made of garbage */
bool closed[RANKS];
bool gone[RANKS * RANKS]; /* [rank * RANKS + peer], in memory of the rank: the peer has closed */
bool reused[RANKS];       /* its memory is somebody else's */

inline leave()
{
#ifndef NO_ALARM
    for (ALL(i)) { alarm[i] = true }
    i = 0;
#endif
    inside[me] = false;
#ifndef NO_WAIT
    peer = 0;
    do
    :: peer < RANKS && (peer == me || !inside[peer]) -> peer++
    :: peer == RANKS -> break
#ifndef THREADS
    :: peer < RANKS -> /* has waited for a while */
#if !defined(PLAIN) && !defined(NO_EXCHANGE)
        exchanged[me] = true;
#endif
        break
#endif
    od;
#endif
    returned[me] = true;
    goto end
}

/* The sum of a part: all inputs are read, then all outputs are written. */
inline touch()
{
    garbage = false;
    peer = 0;
    do
    :: peer < RANKS ->
        garbage = garbage || (returned[peer] && !exchanged[peer]);
        peer++
    :: else -> break
    od;
    peer = 0;
    do
    :: peer < RANKS ->
#ifndef PLAIN
        assert(!returned[peer] || exchanged[peer]);
        assert(!reused[peer]);
        if
        :: !exchanged[peer] -> tainted[peer] = tainted[peer] || garbage
        :: else
        fi;
#else
        if
        :: peer == me -> tainted[me] = tainted[me] || garbage
        :: else
        fi;
#endif
        peer++
    :: else -> break
    od;
    peer = 0
}

active [RANKS] proctype rank()
{
    byte me = _pid, i, peer;
    bool garbage;

    told[me] = true;
    peer = 0;
    do
    :: peer < RANKS && told[peer] -> peer++
    :: peer < RANKS -> leave() /* gives up */
    :: peer == RANKS -> break
    od;
    peer = 0;
#ifdef GATE_FIRST
    if
    :: alarm[me] -> leave()
    :: else
    fi;
#endif
    inside[me] = true;
#if !defined(NO_GATE) && !defined(GATE_FIRST)
    if
    :: alarm[me] -> leave()
    :: else
    fi;
#endif
    touch();
#ifndef NO_LOOK
    if
    :: alarm[me] -> leave()
    :: else
    fi;
#endif
    for (ALL(i)) { done[i]++ }
    i = 0;
    if
    :: done[me] == RANKS
    :: true -> leave() /* gives up */
    fi;
    inside[me] = false;
#ifndef NO_LOOK
    if
    :: alarm[me] -> leave()
    :: else
    fi;
#endif
    assert(!tainted[me]); /* RONDO_OK */
end:
#ifdef CLOSED_FIRST
    closed[me] = true;
#endif
    peer = 0;
    do
    :: peer == me -> peer++
    :: peer < RANKS && peer != me ->
        assert(!reused[peer]);
        gone[peer * RANKS + me] = true;
        peer++
    :: peer == RANKS -> break
    od;
#ifndef CLOSED_FIRST
    closed[me] = true;
#endif
    peer = 0;
    do
    :: peer < RANKS && (peer == me || gone[me * RANKS + peer] || closed[peer]) -> peer++
    :: peer == RANKS -> break
    od;
    reused[me] = true
}
