/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.pml - calls that are posted and finished by whoever comes next, as comm/engine/post.c has it: a posted call holds
 * the turn and hangs at its communicator; threads take it, advance it, and hang it up again or end it.
 *
 * Two calls are posted, one behind the other, each by a thread that then waits for it; another thread closes the
 * communicator when its turn has come. A call can end once its messages have come, which they do at any time.
 *
 * Asserted: one thread at a time advances a call, and none that is over or freed; a call is posted where none hangs; the
 * turn is passed once for each; each is freed once, and at the end nothing hangs. A thread that waits for ever is a
 * deadlock, which Spin finds by itself.
 *
 *     holds: -DCALLS=1
 *     holds: -DCALLS=2
 *     fails: -DCALLS=1 -DTORN       who takes a call looks first and clears then
 *     fails: -DCALLS=1 -DSTALE      a call that is over is hung up again
 *     fails: -DCALLS=2 -DEARLY      a call is hung up before it has the turn
 *     fails: -DCALLS=1 -DONE_USER   the communicator does not count as a user of the call
 *     fails: -DCALLS=1 -DDEAF       who waits for a turn does not take what hangs
 */
byte hangs;            /* the number of a call; 0: none */
byte serving = 1;      /* whose turn it is: call after call, and the closing last */
byte inside[3];        /* threads that advance the call */
bool came[3], over[3], freed[3];
byte users[3];

inline drop(n)
{
    atomic {
        assert(users[n] > 0);
        users[n]--;
        if
        :: users[n] == 0 -> freed[n] = true
        :: else
        fi
    }
}

inline take()
{
#ifdef TORN
    got = hangs;
    hangs = 0
#else
    atomic {
        got = hangs;
        hangs = 0
    }
#endif
}

/* Advance what was taken, if anything was, and give it back. */
inline advance()
{
    if
    :: got == 0
    :: else ->
        assert(!freed[got] && !over[got]);
        inside[got]++;
        assert(inside[got] == 1);
        ended = came[got];
        inside[got]--;
        if
        :: ended ->
            assert(serving == got);
            serving++;
            assert(!freed[got]);
            over[got] = true;
#ifdef STALE
            hangs = got;
#endif
#ifndef ONE_USER
            drop(got)
#endif
        :: else -> hangs = got
        fi
    fi
}

/* Until the condition holds, help what hangs. */
inline await(condition)
{
    do
    :: condition -> break
#ifndef DEAF
    :: !(condition) && hangs != 0 -> take(); advance()
#endif
    od
}

proctype poster(byte n)
{
    byte got;
    bool ended;

#ifndef EARLY
    await(serving == n);
#endif
    users[n] = 1;
#ifndef ONE_USER
    users[n]++;
#endif
    assert(hangs == 0);
    hangs = n;
    if
    :: await(over[n]) /* it waits, or leaves the call to others */
    :: true
    fi;
    drop(n)
}

proctype closer()
{
    byte got;
    bool ended;

    await(serving == CALLS + 1)
}

init {
    byte i;

    atomic {
        for (i : 1 .. CALLS) {
            run poster(i)
        }
        run closer()
    }
    for (i : 1 .. CALLS) {
        came[i] = true
    }
    _nr_pr == 1;
    assert(hangs == 0 && serving == CALLS + 1);
    for (i : 1 .. CALLS) {
        assert(freed[i] && over[i])
    }
}
