/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.pml - one direction of one channel in shared memory, as transport/link/link.h and plan/step_loop.h have it.
 *
 * The writer numbers its messages; each goes, as its length tells both sides, into the ring of short messages or into
 * the ring of slots, at the place that its number says. Its flag is its number with the call's fingerprint. Numbers
 * wrap: M stands for 2^32. A place of the one ring is not written while messages are of the other form, so after M
 * messages its old flag has the number of a new message. That is why the writer sweeps: each M/2 messages it clears
 * the flags of messages that have been consumed. The word 0 means that a place was never used, or was swept; so
 * fingerprints are never 0.
 *
 * The reader's assertion: what it takes is the message that was written for it. A message that it never sees is a
 * deadlock, which Spin finds by itself.
 *
 *     holds: -DM=8
 *     holds: -DM=4
 *     fails: -DM=8 -DNO_SWEEP         an old flag is taken for a new one
 *     fails: -DM=8 -DSWEEP_ALL        flags that nobody has read yet are swept, too
 *     fails: -DM=8 -DLATE_SWEEP       sweeping once in M messages is not enough: some are under way just then
 *     fails: -DM=8 -DFINGERPRINT=0    message number M looks like a place that was never used
 *     fails: -DM=8 -DNO_CREDIT        the writer does not wait for a free place
 */
#ifndef FINGERPRINT
#define FINGERPRINT 1
#endif
#ifdef LATE_SWEEP
#define PERIOD M
#else
#define PERIOD (M / 2)
#endif
#define PLACES 2
#define LAST   (2 * M + 3)
#define WORD(number) ((number) % M + M * FINGERPRINT) /* 0 only if the fingerprint is */

bool is_short[LAST + 1];                  /* of message number i, chosen by the plan: both sides know it */
byte announced;                           /* messages whose form is known */
byte flag[2 * PLACES], payload[2 * PLACES];
byte consumed;                            /* the reader's counter, modulo M */

#define PLACE(message) (((message) - 1) % PLACES + (is_short[message] -> PLACES : 0))

/* Clear what is not under way. `seen` is what the writer last saw of the reader's counter. */
inline sweep(sent, seen)
{
    d_step {
        for (at : 0 .. 2 * PLACES - 1) {
            if
#ifndef SWEEP_ALL
            :: flag[at] && (flag[at] % M + M - seen - 1) % M < (sent + M - seen) % M -> skip
#endif
            :: else -> flag[at] = 0
            fi
        }
        at = 0
    }
}

active proctype writer()
{
    byte message = 1, seen, at;

    do
    :: message <= LAST ->
        if
        :: is_short[message] = true
        :: is_short[message] = false
        fi;
        announced = message;
        if
        :: (message - 1 + M - seen) % M < PLACES -> skip /* the last look still tells */
        :: else ->
#ifndef NO_CREDIT
            (message - 1 + M - consumed) % M < PLACES;
#endif
            seen = consumed
        fi;
        payload[PLACE(message)] = message;
        flag[PLACE(message)] = WORD(message);
#ifndef NO_SWEEP
        if
        :: message % PERIOD == 0 -> sweep(message % M, seen)
        :: else
        fi;
#endif
        message++
    :: else -> break
    od
}

active proctype reader()
{
    byte message = 1;

    do
    :: message <= LAST ->
        announced >= message;
        flag[PLACE(message)] && flag[PLACE(message)] % M == message % M;
        assert(payload[PLACE(message)] == message);
        d_step {
            consumed = message % M;
            is_short[message] = false; /* nobody asks again, and fewer states differ */
            message++
        }
    :: else -> break
    od
}
