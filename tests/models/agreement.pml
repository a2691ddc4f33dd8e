/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agreement.pml - an agreement among ranks of which some end at any moment, and some are suspected though they live, as
 * comm/recovery/agreement.h has it.
 *
 * Every rank has a vote that only it writes: the ballot that it has promised, the one that it has accepted with the
 * proposal, whom it suspects, and the verdict once it knows it. A proposal is the set of failed ranks; flags follow from
 * that set. A rank looks at one vote at a time, so what it has seen of one may be old when it sees the next. Whoever ends
 * does so between any two steps; what it showed stays, and its verdict is read before it is suspected.
 *
 * With -DCUT=b the connection between rank 0 and rank b ends at any moment. Each of them finds out by itself and says that
 * it has lost the other, which nobody else believes. Who hears both waits until they have lost each other, and suspects
 * one of them; the code says which, here it is either.
 *
 * Asserted: of two ranks that have different verdicts one is named in the other's, and a rank that lives is named only
 * after a wrong suspicion. A rank that waits for ever is a deadlock, which Spin finds by itself.
 *
 *     holds: -DRANKS=2 -DDEATHS=1 -DWRONG=0
 *     holds: -DRANKS=3 -DDEATHS=2 -DWRONG=0
 *     holds: -DRANKS=2 -DDEATHS=1 -DWRONG=2
 *     holds: -DRANKS=3 -DDEATHS=2 -DWRONG=1
 *     holds: -DRANKS=3 -DDEATHS=1 -DWRONG=1
 *     holds: -DRANKS=4 -DDEATHS=2 -DWRONG=0
 *     holds: -DRANKS=4 -DDEATHS=0 -DWRONG=1
 *     holds: -DRANKS=3 -DDEATHS=0 -DWRONG=0 -DCUT=1
 *     holds: -DRANKS=3 -DDEATHS=0 -DWRONG=0 -DCUT=2
 *     holds: -DRANKS=3 -DDEATHS=1 -DWRONG=0 -DCUT=1
 *     holds: -DRANKS=3 -DDEATHS=1 -DWRONG=0 -DCUT=2
 *     fails: -DRANKS=3 -DDEATHS=0 -DWRONG=0 -DCUT=2 -DUNDECIDED    who hears both suspects neither
 *     fails: -DRANKS=3 -DDEATHS=0 -DWRONG=1 -DFORGETFUL    who takes over does not propose what was accepted
 *     fails: -DRANKS=3 -DDEATHS=0 -DWRONG=1 -DHASTY        the coordinator decides before all have accepted
 *     fails: -DRANKS=3 -DDEATHS=0 -DWRONG=1 -DDEAF         suspicions of others are not believed
 */
#define MOST 4
#define BIT(i) (1 << (i))
#define ALL (BIT(RANKS) - 1)
#define OWNER(ballot) ((ballot - 1) % RANKS)
#define SUSPECT(i) ((suspects[me] & BIT(i)) != 0)
#ifdef CUT
#define APART(i) (cut && ((me == 0 && i == CUT) || (me == CUT && i == 0)))
#else
#define CUT MOST
#define APART(i) false
#endif
#define HEARD(i) (i < RANKS && i != me && !SUSPECT(i) && !APART(i))
#define COORDINATOR OWNER(promised[me])

/* The lowest rank that is not suspected; not this one, if somebody whom it hears suspects it. */
#define DOUBTS(i) (HEARD(i) && (suspects[i] & BIT(me)) != 0)
#define DOUBTED (DOUBTS(0) || DOUBTS(1) || DOUBTS(2) || DOUBTS(3))
#define FREE(i) (i < RANKS && (i == me -> !DOUBTED : !SUSPECT(i)))
#define LOWEST (FREE(0) -> 0 : (FREE(1) -> 1 : (FREE(2) -> 2 : (FREE(3) -> 3 : MOST))))

/* Has rank i done what the coordinator waits for? */
#define WITH(i) (promised[i] == promised[me] && (accepted[me] != promised[me] || accepted[i] == promised[me]))
#define AWAITED(i) (COORDINATOR == me -> !WITH(i) : (SUSPECT(COORDINATOR) -> LOWEST == i : COORDINATOR == i))

/* Rank i has lost one that this rank has not. */
#define NAMES(i) (HEARD(i) && (suspects[i] & ~suspects[me] & ~BIT(me)) != 0)
#define DISPUTE (NAMES(0) || NAMES(1) || NAMES(2) || NAMES(3))
#define CLAIMS(i, p) (HEARD(i) && (lost[i] & BIT(p)) != 0)
#define WATCHED(p) (NAMES(p) || CLAIMS(0, p) || CLAIMS(1, p) || CLAIMS(2, p) || CLAIMS(3, p))
#define LOST_EACH_OTHER (HEARD(0) && HEARD(CUT) && (lost[0] & BIT(CUT)) != 0 && (suspects[CUT] & BIT(0)) != 0)

/* May this rank take over, be it from itself? */
#define OVERTAKES(i) (HEARD(i) && promised[i] > promised[me] && OWNER(promised[i]) != me && SUSPECT(OWNER(promised[i])))
#define OVERTAKEN (OVERTAKES(0) || OVERTAKES(1) || OVERTAKES(2) || OVERTAKES(3))
#define VACANT (COORDINATOR == me -> OVERTAKEN : SUSPECT(COORDINATOR))
#define HIGHER(a, b) (a > b -> a : b)
#define HIGHEST HIGHER(HIGHER(promised[0], promised[1]), HIGHER(promised[2], promised[3]))

byte promised[MOST] = 1, accepted[MOST], proposal[MOST], suspects[MOST + 1], lost[MOST + 1], verdict[MOST];
bool decided[MOST], gone[MOST];
byte deaths = DEATHS, wrong = WRONG;
bool cut;

inline begin_ballot()
{
    seen = 0;
    best = accepted[me];
    value = proposal[me]
}

inline check()
{
    for (i : 0 .. RANKS - 1) {
        assert(!decided[i] || verdict[i] == verdict[me] || (verdict[i] & BIT(me)) != 0 || (verdict[me] & BIT(i)) != 0);
        assert(WRONG > 0 || gone[i] || (verdict[me] & BIT(i)) == 0 || (cut && (i == 0 || i == CUT)))
    }
    i = 0
}

/* All that a rank may do about another one, by its number, as Spin needs guards without side effects. */
#ifdef DEAF
#define WARNS(p) false
#else
#define WARNS(p) (HEARD(p) && (suspects[p] & ~lost[p] & ~suspects[me]) != 0)
#endif
#ifdef HASTY
#define IS_WITH(p) (promised[p] == promised[me])
#else
#define IS_WITH(p) WITH(p)
#endif
#define LOOK_AT(p)                                                                                    \
    :: atomic { p < RANKS && decided[p] && !APART(p) -> verdict[me] = verdict[p]; decided[me] = true; check() } break \
    :: atomic { HEARD(p) && gone[p] && !decided[p] && (AWAITED(p) || WATCHED(p)) -> \
           suspects[me] = suspects[me] | BIT(p) }                                                     \
    :: atomic { HEARD(p) && wrong > 0 && !gone[p] -> wrong--; suspects[me] = suspects[me] | BIT(p) }  \
    :: atomic { WARNS(p) -> suspects[me] = suspects[me] | (suspects[p] & ~lost[p]) }                  \
    :: atomic { p < RANKS && !SUSPECT(p) && APART(p) ->                                               \
           suspects[me] = suspects[me] | BIT(p); lost[me] = lost[me] | BIT(p) }                       \
    :: atomic { HEARD(p) && !NAMES(p) && promised[p] > promised[me] && OWNER(promised[p]) == p ->                  \
           promised[me] = promised[p]; seen = 0 }                                                     \
    :: atomic { HEARD(p) && !NAMES(p) && COORDINATOR == p && accepted[p] == promised[me] &&                        \
           accepted[me] != promised[me] -> accepted[me] = promised[me]; proposal[me] = proposal[p] }  \
    :: atomic { HEARD(p) && COORDINATOR == me && (seen & BIT(p)) == 0 && IS_WITH(p) ->                \
           seen = seen | BIT(p);                                                                      \
           if                                                                                         \
           :: accepted[p] > best -> best = accepted[p]; value = proposal[p]                           \
           :: else                                                                                    \
           fi }

active [RANKS] proctype rank()
{
    byte me = _pid, i, seen, best, value;

    do
    :: atomic { deaths > 0 -> deaths--; gone[me] = true; goto end }
    LOOK_AT(0)
    LOOK_AT(1)
    LOOK_AT(2)
    LOOK_AT(3)
#if CUT < MOST
    :: atomic { !cut -> cut = true }
#ifndef UNDECIDED
    :: atomic { LOST_EACH_OTHER -> suspects[me] = suspects[me] | BIT(0) }
    :: atomic { LOST_EACH_OTHER -> suspects[me] = suspects[me] | BIT(CUT) }
#endif
#endif
    :: atomic { LOWEST == me && VACANT ->
           promised[me] = ((HIGHEST - 1) / RANKS + 1) * RANKS + me + 1;
           begin_ballot() }
    :: atomic { COORDINATOR == me && !DISPUTE && (seen | suspects[me] | BIT(me)) == ALL ->
           seen = 0;
           if
           :: accepted[me] == promised[me] -> verdict[me] = proposal[me]; decided[me] = true; check(); break
           :: else
           fi;
#ifdef FORGETFUL
           proposal[me] = suspects[me] & ~BIT(me);
#else
           proposal[me] = (best > 0 -> value : suspects[me] & ~BIT(me));
#endif
           accepted[me] = promised[me] }
    od;
    gone[me] = (verdict[me] & BIT(me)) != 0;
end:
    skip
}
