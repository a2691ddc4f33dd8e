/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.pml - parted and plain messages in the same slots, as transport/link/link.h and plan/step_slots.h have it.
 *
 * A plain message has a whole slot; a parted one has a part of it, another one each time round. So of parted messages
 * as many more may be under way as a slot has parts. Which form a message has is told by its length, which both sides
 * know. Flags are in lines of their own, which ring.pml is about: here the writer tells how many it has published.
 *
 * The reader's assertion: each part of a message's place has what was written there for it.
 *
 *     holds: -DSLOTS=2 -DPARTS=2
 *     holds: -DSLOTS=2 -DPARTS=4
 *     holds: -DSLOTS=3 -DPARTS=2
 *     fails: -DSLOTS=2 -DPARTS=2 -DNO_PLAIN     a parted message overwrites a part of a plain one
 *     fails: -DSLOTS=2 -DPARTS=2 -DPLAIN_DEEP   a plain message overwrites parted ones
 *     fails: -DSLOTS=2 -DPARTS=2 -DONE_PART     a parted message overwrites the one a round before
 */
#define LAST (2 * SLOTS * PARTS + 3)
#ifdef ONE_PART
#define PART(message) 0
#else
#define PART(message) (((message) - 1) / SLOTS % PARTS)
#endif
#define SLOT(message)       (((message) - 1) % SLOTS * PARTS)
#define HAS(message, part)  (is_plain[message] || (part) == PART(message))

bool is_plain[LAST + 1];
byte announced, published, consumed;
byte memory[SLOTS * PARTS]; /* the number of the message that wrote each part last */

/* What the writer last saw of the reader's counter. */
byte seen, plain;

#ifdef NO_PLAIN
#define FREE (SLOTS * PARTS)
#else
#define FREE (seen >= plain -> SLOTS * PARTS : SLOTS)
#endif
#ifdef PLAIN_DEEP
#define ROOM(message) FREE
#else
#define ROOM(message) (is_plain[message] -> SLOTS : FREE)
#endif

active proctype writer()
{
    byte message = 1, part;

    do
    :: message <= LAST ->
        if
        :: is_plain[message] = true
        :: is_plain[message] = false
        fi;
        announced = message;
        do
        :: message - 1 - seen < ROOM(message) -> break
        :: else ->
            consumed > seen;
            seen = consumed
        od;
        part = 0;
        do
        :: part < PARTS ->
            if
            :: HAS(message, part) -> memory[SLOT(message) + part] = message
            :: else
            fi;
            part++
        :: else -> break
        od;
        if
        :: is_plain[message] -> plain = message
        :: else
        fi;
        published = message;
        message++
    :: else -> break
    od
}

active proctype reader()
{
    byte message = 1, part;

    do
    :: message <= LAST ->
        announced >= message && published >= message;
        part = 0;
        do
        :: part < PARTS ->
            assert(!HAS(message, part) || memory[SLOT(message) + part] == message);
            part++
        :: else -> break
        od;
        part = 0;
        d_step {
            consumed = message;
            is_plain[message] = false; /* nobody asks again, and fewer states differ */
            message++
        }
    :: else -> break
    od
}
