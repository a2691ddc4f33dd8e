/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grow.pml - members and newcomers make one communicator of all, as comm/grow.c has it: members agree that all of them are
 * there, everybody meets at the place of an id, and all who have the new communicator agree that all have it.
 *
 * The first MEMBERS ranks are members. An agreement is one step, as in shrink.pml. In the last one, who has nothing to
 * agree on (its meeting failed) counts as failed, as it has closed what there was. The place is served by member 0: if it
 * refuses or is gone, who comes or waits there gets an error.
 *
 * Asserted: if a rank keeps the new communicator, no rank that is there has an error. A rank that waits for ever is a
 * deadlock, which Spin finds by itself.
 *
 *     holds: -DRANKS=2 -DMEMBERS=1 -DDEATHS=1
 *     holds: -DRANKS=3 -DMEMBERS=2 -DDEATHS=1
 *     holds: -DRANKS=3 -DMEMBERS=1 -DDEATHS=2
 *     holds: -DRANKS=4 -DMEMBERS=2 -DDEATHS=1
 *     fails: -DRANKS=3 -DMEMBERS=2 -DDEATHS=1 -DTRUSTING    what was opened is kept without asking whether all have it
 *     fails: -DRANKS=3 -DMEMBERS=2 -DDEATHS=1 -DSILENT      newcomers are not told that the members have given up
 *     fails: -DRANKS=3 -DMEMBERS=2 -DDEATHS=1 -DBLIND       nobody looks after members while newcomers are awaited
 */
#define BIT(i) (1 << (i))
#define ALL (BIT(RANKS) - 1)
#define OLD (BIT(MEMBERS) - 1)
#define IN(set, i) (((set) & BIT(i)) != 0)
#define IS_MEMBER(i) (i < MEMBERS)

byte gone, deaths = DEATHS;
byte came, met, settled, without; /* sets: at the members' agreement, at the place, at the last agreement, with an error */
byte kept, refused_by;
bool gathered, complete, refused;
bool first_is_good, decided, last_is_good;

#define DIE atomic { deaths > 0 -> deaths--; gone = gone | BIT(me); goto end }
#define PLACE_IS_GONE (refused || IN(gone, 0))
#ifdef BLIND
#define SEEN_GONE ((gone & met) != 0) /* who had come, by its connection */
#else
#define SEEN_GONE ((gone & met) != 0 || (IN(met, 0) && (gone & OLD) != 0)) /* member 0 looks after them */
#endif

inline fail_here()
{
    atomic {
        without = without | BIT(me);
        assert((kept & ~gone) == 0);
        goto end
    }
}

active [RANKS] proctype rank()
{
    byte me = _pid;

    if
    :: IS_MEMBER(me) ->
       came = came | BIT(me);
       if
       :: DIE
       :: atomic { gathered || ((came | gone) & OLD) == OLD ->
              if
              :: !gathered -> gathered = true; first_is_good = ((gone & OLD) == 0)
              :: else
              fi }
       fi;
       if
       :: !first_is_good ->
#ifndef SILENT
          if
          :: me == 0 -> refused = true
          :: else
          fi;
#endif
          fail_here()
       :: else
       fi
    :: else
    fi;
    if
    :: DIE
    :: met = met | BIT(me)
    fi;
    if
    :: DIE
    :: atomic { complete || met == ALL -> complete = true }
    :: atomic { !complete && PLACE_IS_GONE -> refused = true; fail_here() }
    :: atomic { SEEN_GONE && !complete -> refused = true; fail_here() } /* the place tells all who are there */
    :: atomic { (gone & ~OLD & ~met) != 0 && !complete -> refused = true; fail_here() } /* the timeout: it never comes */
    :: atomic { complete && gone != 0 -> fail_here() }                  /* or connecting fails, for this one */
    fi;
#ifdef TRUSTING
    atomic { assert((without & ~gone) == 0); kept = kept | BIT(me) }
    goto end;
#endif
    settled = settled | BIT(me);
    if
    :: DIE
    :: atomic { decided || (settled | gone | without) == ALL ->
           if
           :: !decided -> decided = true; last_is_good = (((gone & ~settled) | without) == 0)
           :: else
           fi }
    fi;
    if
    :: atomic { last_is_good -> assert((without & ~gone) == 0); kept = kept | BIT(me) }
    :: else -> fail_here()
    fi;
end:
    skip
}
