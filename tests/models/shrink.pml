/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shrink.pml - ranks that are left make a communicator of themselves, as comm/recovery/shrink.c has it: agree on who has
 * failed, open one among the others, agree on whether all have it, and so on until nobody fails meanwhile.
 *
 * An agreement is one step here (agreement.pml is about how it comes to be): it is over when every rank has come or is
 * gone, and gives all the same verdict. A rank that came and went may be in it or not. Opening ends well only if all who
 * are in the list have come; if one of them goes, any of the others may find that it failed, and others that it did not.
 *
 * Asserted: whoever is done in the same agreement has the same outcome, and a communicator that was kept has all its
 * ranks, or those that went after they had agreed. A rank that waits for ever is a deadlock, which Spin finds by itself.
 *
 *     holds: -DRANKS=2 -DDEATHS=1
 *     holds: -DRANKS=3 -DDEATHS=2
 *     holds: -DRANKS=3 -DDEATHS=1 -DREFUSALS=1
 *     holds: -DRANKS=4 -DDEATHS=1
 *     fails: -DRANKS=3 -DDEATHS=1 -DTRUSTING    what was opened is kept without asking whether all have it
 *     fails: -DRANKS=3 -DDEATHS=1 -DOWN_VIEW    each rank opens one among those that it has not seen to be gone
 *     fails: -DRANKS=3 -DDEATHS=1 -DREFUSALS=1 -DDEAF    the flags of the others are not looked at
 */
#ifndef REFUSALS
#define REFUSALS 0 /* ranks that cannot open one, without being gone: out of memory, say */
#endif
#define MOST 4
#define TURNS (DEATHS + 3)
#define BIT(i) (1 << (i))
#define ALL (BIT(RANKS) - 1)
#define IN(set, i) (((set) & BIT(i)) != 0)

byte gone, deaths = DEATHS, refusals = REFUSALS;
byte came[TURNS], flagged[TURNS], failed[TURNS]; /* of an agreement: sets of ranks */
bool decided[TURNS], good[TURNS];
byte at_door[TURNS]; /* who has come to open the communicator of that turn */
byte listed[TURNS];  /* among whom; in OWN_VIEW the list of who came first */

#define GATHERED(t) ((came[t] | gone) == ALL)
#define COMPLETE(t) ((at_door[t] & listed[t]) == listed[t])
#define BROKEN(t) ((gone & listed[t]) != 0)

inline decide(t)
{
    decided[t] = true;
    failed[t] = gone & ~came[t];
    for (i : 0 .. RANKS - 1) { /* who came and went: either way */
        if
        :: IN(gone & came[t], i) -> failed[t] = failed[t] | BIT(i)
        :: true
        fi
    }
    i = 0;
    good[t] = ((came[t] & ~failed[t] & ~flagged[t]) == 0)
}

#define DIE atomic { deaths > 0 -> deaths--; gone = gone | BIT(me); goto end }

active [RANKS] proctype rank()
{
    byte me = _pid, i, turn, last, list;
    bool made, tried, same;

    do
    :: DIE
    :: true ->
       atomic {
           came[turn] = came[turn] | BIT(me);
           flagged[turn] = flagged[turn] | (made -> BIT(me) : 0)
       }
       if
       :: DIE
       :: atomic { decided[turn] || GATHERED(turn) ->
              if
              :: !decided[turn] -> decide(turn)
              :: else
              fi }
       fi;
       if /* the others have gone on without this rank only if it is gone */
       :: atomic { IN(failed[turn], me) -> assert(IN(gone, me)) }
       :: else
       fi;
       same = tried && failed[turn] == last;
#ifdef DEAF
       if
       :: same && made -> assert(good[turn]); break
#else
       if
       :: same && good[turn] -> assert(made); break
#endif
       :: same && !good[turn] -> break /* all give up */
       :: else
       fi;
       last = failed[turn];
       made = false;
#ifdef OWN_VIEW
       list = ALL & ~gone;
#else
       list = ALL & ~failed[turn];
#endif
       atomic {
           if
           :: at_door[turn] == 0 -> listed[turn] = list
           :: else -> assert(listed[turn] == list)
           fi;
           at_door[turn] = at_door[turn] | BIT(me)
       }
       if
       :: DIE
       :: COMPLETE(turn) -> made = true
       :: BROKEN(turn)   -> made = false
       :: atomic { refusals > 0 && COMPLETE(turn) -> refusals--; made = false }
       fi;
#ifdef TRUSTING
       if
       :: made -> assert(!BROKEN(turn)); break
       :: else
       fi;
#endif
       tried = true;
       turn++;
       assert(turn < TURNS)
    od;
end:
    skip
}
