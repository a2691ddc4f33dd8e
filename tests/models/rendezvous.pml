/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous.pml - how the ranks of a job meet, as comm/bootstrap*.c have it: the server of rank 0, the ranks that seek it,
 * and (TREE) those of them at whom others wait.
 *
 * A rank connects and claims its number. Until it is welcomed nobody has proved anything to it, so it tries again
 * whatever happens; from then on its connection is its membership. It hands in its endpoint, is told its position, takes its position,
 * and hears the answer: all endpoints, or that it failed. A connection is two queues and two ends. What its server has not
 * read when it closes makes the system throw away what its rank has not read. Proofs are a bit that nobody forges.
 *
 * Asserted: who returns RONDO_OK has the endpoint of every rank of this job and of this rendezvous, and its own under its own
 * number; all have the same endpoints; and unless somebody dies, gives up, or is one too many, either all ranks return
 * RONDO_OK or none. A rank that waits for ever is a deadlock, which Spin finds by itself, but for one who seeks when
 * nobody will listen any more: that only its timeout ends, and it is an error if anybody has returned RONDO_OK.
 *
 * Which things may happen, each at any time: SLOW, the few seconds pass that a step may take; SLOW_MOVE, those that
 * getting to a relay may take; TIMEOUT, a rank's whole patience passes; DEATH, one rank dies, in any step; DECLINE, ranks
 * come with an empty endpoint; TWIN, another process claims number 1; STRAY, a rank of another job comes; STALE, the server
 * of another job has the address first, refuses or lies. MEETINGS follow each other at one address with one secret. In
 * a TREE one guest waits at the server, and one at each relay.
 *
 *     holds: -DRANKS=2 -DSLOW -DMEETINGS=2
 *     holds: -DRANKS=3
 *     holds: -DRANKS=3 -DTIMEOUT
 *     holds: -DRANKS=3 -DDEATH
 *     holds: -DRANKS=2 -DDEATH -DSLOW -DTIMEOUT
 *     holds: -DRANKS=3 -DDECLINE -DMEETINGS=2
 *     holds: -DRANKS=2 -DTWIN
 *     holds: -DRANKS=3 -DSTRAY
 *     holds: -DRANKS=2 -DSTALE -DSLOW
 *     holds: -DRANKS=3 -DTREE -DSLOW_MOVE
 *     holds: -DRANKS=3 -DTREE -DTIMEOUT
 *     holds: -DRANKS=3 -DTREE -DDEATH
 *     holds: -DRANKS=4 -DTREE
 *     fails: -DRANKS=3 -DEARLY                     the server answers before the last has come
 *     fails: -DRANKS=2 -DTWIN -DNO_TWICE           ... does not see that a number is claimed twice
 *     fails: -DRANKS=2 -DSTRAY -DNO_CLAIM_PROOF    ... lets anybody in
 *     fails: -DRANKS=3 -DDEATH -DNO_LEAVE          ... does not care whose connection ends
 *     fails: -DRANKS=3 -DMEETINGS=2 -DLATE_SHUT    ... still listens when its first answer goes
 *     fails: -DRANKS=2 -DSTALE -DNO_ANSWER_PROOF   a rank believes who listens there
 *     fails: -DRANKS=2 -DSTALE -DNO_RETRY          ... or takes a refusal from it for the last word
 *     fails: -DRANKS=2 -DDECLINE -DNO_LOOK         nobody looks for empty endpoints
 *     fails: -DRANKS=3 -DTREE -DONLY_POSITIONED    a relay answers only those of whom it has read that they wait
 *     fails: -DRANKS=3 -DTREE -DCLOSE_UNREAD       ... and hangs up before it has read that
 */
#ifndef MEETINGS
#define MEETINGS 1
#endif
#if defined(TWIN) || defined(STRAY)
#define CONNECTORS RANKS
#else
#define CONNECTORS (RANKS - 1)
#endif
#if defined(TWIN) || defined(DEATH) || defined(TIMEOUT)
#define AGREE false
#else
#define AGREE true
#endif
#define CONNS 6 /* two of each connector, for one that comes again while its server still sees the old one */

/* Whose address it is, whose connection, and whose word. */
#define NOBODY  0
#define ROSTER 1
#define OTHER   2
#define OURS    true
#define OTHERS  false

/* Endpoints, three bits each. */
#define EMPTY          1
#define ENDPOINT_OF(e)     (2 + (e))
#define TWINS_ENDPOINT(e)  (4 + (e))
#define FOREIGN        6
#define ENDPOINT(all, r)   ((all) >> (3 * (r)) & 7)
#define PUT(all, r, x) all = (all & ~(7 << (3 * (r)))) | ((x) << (3 * (r)))

#define FAILED 1
#define OK     2

/* What the server waits for from a connection. */
#define CLAIM_STAGE   0
#define BLOB_STAGE    1
#define WAITING_STAGE 2
#define POSITIONING_STAGE 3
#define POSITIONED_STAGE  4
#define LEAVING_STAGE 5

mtype = { CLAIM, BLOB, TAKE_POSITION, NEWS, WELCOME, REFUSAL, POSITION, REPLY };
chan up[9] = [2] of { mtype, bool, byte };
chan down[9] = [2] of { mtype, bool, byte, short };
bool rank_open[9], server_open[9];
byte host[9], stage[9]; /* a connection to a relay: the relay's index */

#ifdef STALE
byte listener = OTHER;
#else
byte listener = NOBODY;
#endif
bool over;                  /* rank 0 will not listen again */
bool ok[2], failed[2];      /* somebody has returned that from the rendezvous */
short agreed[2];            /* with these endpoints */
bool dead[5];               /* a connector, or [4] rank 0 */
bool relay_open[3];

#define EACH(P)  (P(0) || P(1) || P(2) || P(3) || P(4) || P(5))
#define FIND(P)  if :: P(0) -> c = 0 :: P(1) -> c = 1 :: P(2) -> c = 2 \
                    :: P(3) -> c = 3 :: P(4) -> c = 4 :: P(5) -> c = 5 fi
#define VISIT(c) (server_open[c] && host[c] == ROSTER)
#define SAID(c)  (len(up[c]) > 0 || !rank_open[c])
#define ENDED(c) (len(down[c]) == 0 && !server_open[c])

inline forget_up(to)
{
    do
    :: len(up[to]) > 0 -> up[to]?_, _, _
    :: else -> break
    od
}

inline forget_down(to)
{
    do
    :: len(down[to]) > 0 -> down[to]?_, _, _, _
    :: else -> break
    od
}

inline tell(to, what, proved, number, all)
{
    if
    :: rank_open[to] -> down[to]!what, proved, number, all
    :: else
    fi
}

/* A server closes; a rank closes. */
inline hang_up(to)
{
    server_open[to] = false;
    stage[to] = CLAIM_STAGE;
    if
    :: len(up[to]) > 0 -> forget_up(to); forget_down(to)
    :: else
    fi
}

inline leave(from)
{
    rank_open[from] = false;
    forget_down(from)
}

inline say(to, what, proved, word)
{
    if
    :: server_open[to] -> up[to]!what, proved, word
    :: else -> forget_down(to)
    fi
}

/* It returns from the rendezvous, and looks at what it got. */
inline conclude(number, mine)
{
    d_step {
        if
        :: result == OK ->
#ifndef NO_LOOK
            for (r : 0 .. RANKS - 1) {
                if
                :: ENDPOINT(endpoints, r) == EMPTY -> result = FAILED
                :: else
                fi
            }
#endif
            r = 0
        :: else
        fi;
        if
        :: result == OK ->
            for (r : 0 .. RANKS - 1) {
#ifdef TWIN
                assert(ENDPOINT(endpoints, r) == ENDPOINT_OF(epoch) || (r == 1 && ENDPOINT(endpoints, r) == TWINS_ENDPOINT(epoch)))
#else
                assert(ENDPOINT(endpoints, r) == ENDPOINT_OF(epoch))
#endif
            }
            r = 0;
            assert(ENDPOINT(endpoints, number) == mine);
            assert(!ok[epoch] || agreed[epoch] == endpoints);
            ok[epoch] = true;
            agreed[epoch] = endpoints
        :: else ->
            failed[epoch] = true
        fi;
        assert(!AGREE || !ok[epoch] || !failed[epoch])
    }
}

/* ---- The server, which is rank 0 ------------------------------------------------------------------------------ */

#ifdef NO_CLAIM_PROOF
#define GENUINE true
#else
#define GENUINE (proof == OURS)
#endif
#ifdef NO_TWICE
#define TWICE false
#else
#define TWICE (claimed & 1 << word)
#endif
#ifndef NO_LEAVE
#define MEMBER_GONE decided = (decided -> decided : FAILED)
#else
#define MEMBER_GONE skip
#endif

inline drop()
{
    if
    :: stage[c] >= BLOB_STAGE && stage[c] <= POSITIONED_STAGE -> MEMBER_GONE
    :: else
    fi;
    hang_up(c)
}

inline answer()
{
    tell(c, REPLY, OURS, decided, blobs);
    if
    :: stage[c] == WAITING_STAGE || stage[c] == POSITIONED_STAGE -> hang_up(c)
    :: else -> stage[c] = LEAVING_STAGE
    fi
}

inline take_claim()
{
    if
    :: !GENUINE ->
        tell(c, REFUSAL, OTHERS, 0, 0);
        stage[c] = LEAVING_STAGE
    :: GENUINE && !rank_open[c] -> hang_up(c) /* it does not take the welcome; over TCP that may go unnoticed */
    :: GENUINE ->
        tell(c, WELCOME, OURS, 0, 0);
        stage[c] = BLOB_STAGE;
        if
        :: decided == OK ->
            tell(c, REFUSAL, OURS, 0, 0);
            stage[c] = LEAVING_STAGE
        :: decided == FAILED || (!decided && TWICE) -> decided = FAILED; answer()
        :: !decided && !TWICE ->
            claimed = claimed | 1 << word;
            number[c] = word
        fi
    fi
}

/* Where the guest is told to wait: bit 0, it is to be a relay; the rest, the relay to go to (none: 0). */
inline give_position()
{
    word = 0;
#ifdef TREE
    given++;
    if
    :: given < RANKS - 1 -> word = 1; expected++
    :: else
    fi;
    is_relay[c] = word;
    if
    :: here > 0 && relays > 0 -> /* the first with a free position */
        word = word | relay[0] << 1;
        sent_away[c] = true;
        relay[0] = relay[1];
        relay[1] = 0;
        relays--
    :: else -> here++
    fi;
#endif
    stage[c] = POSITIONING_STAGE;
    tell(c, POSITION, OURS, word, 0)
}

#ifdef EARLY
#define ALL_GUESTS (RANKS - 2)
#else
#define ALL_GUESTS (RANKS - 1)
#endif

/* Bit 0: it has moved; the rest: who may be told to go there (none: 0). */
inline read_taken()
{
#ifdef TREE
    if
    :: sent_away[c] && !(word & 1) -> here++
    :: else
    fi;
    expected = expected - is_relay[c];
    if
    :: is_relay[c] && word >> 1 -> relay[relays] = word >> 1; relays++
    :: else
    fi;
    is_relay[c] = 0;
    sent_away[c] = 0;
#endif
    stage[c] = POSITIONED_STAGE;
    positioned++;
    if
    :: positioned == ALL_GUESTS && !decided -> decided = OK
    :: else
    fi;
    if
    :: word & 1 -> hang_up(c)
    :: else
    fi
}

inline serve()
{
    if
    :: len(up[c]) > 0 ->
        up[c]?what, proof, word;
        if
        :: stage[c] == CLAIM_STAGE -> take_claim()
        :: stage[c] == BLOB_STAGE -> PUT(blobs, number[c], word); stage[c] = WAITING_STAGE
        :: stage[c] == POSITIONING_STAGE -> read_taken()
        :: stage[c] == POSITIONED_STAGE -> assert(what == NEWS); MEMBER_GONE
        :: stage[c] == LEAVING_STAGE
        fi
    :: else -> drop()
    fi;
    word = 0; proof = 0; what = 0
}

#define READY(c)  (VISIT(c) && SAID(c))
#define MEMBER(c) (VISIT(c) && stage[c] >= BLOB_STAGE && stage[c] <= POSITIONED_STAGE)
#define VISITS(c) VISIT(c)
#define DOOR(c)   (VISIT(c) && stage[c] == CLAIM_STAGE)
#define LATE(c)   (DOOR(c) || (VISIT(c) && !SAID(c) && (stage[c] == BLOB_STAGE || stage[c] == LEAVING_STAGE)))
#if defined(TREE) && (defined(SLOW) || defined(SLOW_MOVE))
#define A_POSITION_IS_FREE true
#elif defined(TREE)
#define A_POSITION_IS_FREE (here == 0 || relays > 0 || expected == 0)
#else
#define A_POSITION_IS_FREE true
#endif
#define WAITS(c)  (VISIT(c) && stage[c] == WAITING_STAGE && A_POSITION_IS_FREE)

#define GATHER 0
#define ANSWER 1
#define LINGER 2
#define DRAIN  3
#define ROUND  ((phase == GATHER && !decided) || phase >= LINGER)
#ifdef LATE_SHUT
#define SHUTS_FIRST false
#else
#define SHUTS_FIRST (decided == OK)
#endif

inline shut()
{
    listener = NOBODY;
    for (c : 0 .. CONNS - 1) {
        if
        :: DOOR(c) -> hang_up(c)
        :: else
        fi
    }
    c = 0
}

#define NEVER_COMES(who) (dead[who] && !(claimed & 1 << (who + 1)) && !server_open[2 * who] && !server_open[2 * who + 1])

active proctype rank_0()
{
    byte epoch, c, r, word, decided, phase, claimed, positioned, result, mine;
    byte number[CONNS];
    short blobs, endpoints;
    bool proof;
    mtype what;
#ifdef TREE
    byte given, here, expected, relays, relay[3];
    bit is_relay[CONNS], sent_away[CONNS];
#endif
    {
        epoch = 0;
meet:
        atomic {
            listener == NOBODY -> listener = ROSTER;
            mine = ENDPOINT_OF(epoch);
#ifdef DECLINE
            if
            :: true
            :: mine = EMPTY
            fi;
#endif
            blobs = mine;
            claimed = 1
        }
        do
        /* A round: one connection is served or positioned; or has not spoken in time, or has to make room. */
        :: atomic { ROUND && EACH(READY) -> FIND(READY); serve(); c = 0 }
        :: atomic { !decided && EACH(WAITS) -> FIND(WAITS); give_position(); word = 0; c = 0 }
#ifdef SLOW
        :: atomic { ROUND && EACH(LATE) -> FIND(LATE); drop(); c = 0 }
#endif
#ifdef DEATH
        :: atomic { !decided && (NEVER_COMES(0) || NEVER_COMES(1)) -> decided = FAILED } /* only a timeout ends that */
#endif
#ifdef TIMEOUT
        :: atomic { !decided -> decided = FAILED }
#endif
        /* Who has been told of success may open the next communicator at once; of failure, those shall hear who come
         * a moment later. */
        :: atomic { phase == GATHER && decided && !SHUTS_FIRST -> phase = ANSWER }
        :: atomic {
                (phase == GATHER && SHUTS_FIRST) || phase == LINGER ->
                phase = (phase == GATHER -> ANSWER : DRAIN);
                shut()
            }
        :: atomic { phase == ANSWER && EACH(MEMBER) -> FIND(MEMBER); answer(); c = 0 }
        :: atomic { phase == ANSWER && !EACH(MEMBER) -> phase = (listener == ROSTER -> LINGER : DRAIN) }
        :: atomic { phase == DRAIN && !EACH(VISITS) -> phase = GATHER; break }
        od;
        atomic {
            result = decided;
            endpoints = blobs;
            conclude(0, mine);
            d_step {
                decided = 0; claimed = 0; positioned = 0; blobs = 0; endpoints = 0;
                for (c : 0 .. CONNS - 1) { number[c] = 0 }
                c = 0;
#ifdef TREE
                given = 0; here = 0; expected = 0; relays = 0; relay[0] = 0; relay[1] = 0;
#endif
                epoch++
            }
            if
            :: result == OK && epoch < MEETINGS -> goto meet
            :: else
            fi;
            over = true
        }
    } unless { dead[4] }
}

/* ---- The other ranks ------------------------------------------------------------------------------------------ */

#ifdef SLOW
#define SECONDS_PASS true
#else
#define SECONDS_PASS false
#endif
#if defined(SLOW) || defined(SLOW_MOVE)
#define MOVE_FAILS true
#else
#define MOVE_FAILS false
#endif
#ifdef TIMEOUT
#define PATIENCE_ENDS true
#else
#define PATIENCE_ENDS false
#endif

/* The next frame, or what = 0: the connection has ended, or no frame has come in time. */
inline hear(from, hurry)
{
    atomic {
        if
        :: down[from]?what, proof, word, endpoints
        :: ENDED(from) || hurry -> what = 0
        fi
    }
}

#ifdef TREE
#define NO_GUEST 3
#define SITS_WITH(v) (server_open[CONNS + (v)] && host[CONNS + (v)] == me)
#define SPEAKS(v)    (SITS_WITH(v) && SAID(CONNS + (v)))

/* Wait at another rank: `u` is the connection to it then. */
inline move()
{
    atomic {
        what = 0;
        if
        :: relay_open[there] ->
            u = CONNS + me;
            rank_open[u] = true;
            server_open[u] = true;
            host[u] = there;
            up[u]!CLAIM, secret, number
        :: else
        fi
    }
    if
    :: u != c -> hear(u, MOVE_FAILS)
    :: else
    fi;
    atomic {
        if
        :: what == POSITION ->
            say(u, TAKE_POSITION, secret, 0);
            word = 1
        :: u != c && what != POSITION -> leave(u); u = c; word = 0
        :: else -> word = 0
        fi;
        what = 0; endpoints = 0
    }
}

inline serve_guest()
{
    if
    :: len(up[CONNS + guest]) > 0 ->
        up[CONNS + guest]?what, proof, word;
        if
        :: what == CLAIM -> tell(CONNS + guest, POSITION, secret, 0, 0); stage[CONNS + guest] = POSITIONING_STAGE
        :: what == TAKE_POSITION -> stage[CONNS + guest] = POSITIONED_STAGE
        :: what == NEWS -> knows = true
        fi
    :: else ->
        knows = stage[CONNS + guest] == POSITIONED_STAGE;
        hang_up(CONNS + guest);
        guest = NO_GUEST
    fi;
    if
    :: knows -> say(u, NEWS, secret, 0)
    :: else
    fi;
    what = 0; proof = 0; word = 0
}

#define SERVE_GUEST(v) :: atomic { !knows && SPEAKS(v) -> guest = v; serve_guest() }

/* Wait for the answer, or find out that there will be none, and pass it on. */
inline be_relay()
{
    do
    :: atomic { down[u]?what, proof, word, endpoints -> result = word; what = 0; proof = 0; word = 0; break }
    :: ENDED(u) -> break
    SERVE_GUEST(0)
    SERVE_GUEST(1)
    SERVE_GUEST(2)
#ifdef SLOW
    :: knows -> break
#endif
#ifdef TIMEOUT
    :: break
#endif
    od;
    atomic {
        relay_open[me] = false;
        guest = NO_GUEST;
        for (r : 0 .. 2) {
            if
            :: SITS_WITH(r) && stage[CONNS + r] == CLAIM_STAGE -> hang_up(CONNS + r)
            :: SITS_WITH(r) && stage[CONNS + r] != CLAIM_STAGE -> guest = r
            :: else
            fi
        }
        r = 0;
        if
#ifdef ONLY_POSITIONED
        :: guest != NO_GUEST && stage[CONNS + guest] == POSITIONED_STAGE ->
#else
        :: guest != NO_GUEST ->
#endif
            tell(CONNS + guest, REPLY, secret, result, endpoints);
#ifndef CLOSE_UNREAD
            if
            :: stage[CONNS + guest] == POSITIONED_STAGE -> hang_up(CONNS + guest)
            :: else
            fi
#else
            hang_up(CONNS + guest)
#endif
        :: else
        fi
    }
    /* What a guest still says is thrown away, until it hangs up. */
    do
    :: atomic {
            guest != NO_GUEST && SPEAKS(guest) ->
            if
            :: len(up[CONNS + guest]) > 0 -> up[CONNS + guest]?_, _, _
            :: else -> hang_up(CONNS + guest)
            fi
        }
#ifdef SLOW
    :: atomic { guest != NO_GUEST && SITS_WITH(guest) && !SPEAKS(guest) -> hang_up(CONNS + guest) }
#endif
    :: guest == NO_GUEST || !SITS_WITH(guest) -> break
    od;
    guest = NO_GUEST;
    knows = false
}
#endif

#ifdef NO_ANSWER_PROOF
#define PROVED true
#else
#define PROVED (proof == secret || secret == OTHERS) /* who belongs to another job may do as it likes */
#endif

proctype connector(byte me; byte number; bool secret)
{
    byte epoch, c, u, r, flip, word, result, mine;
    short endpoints;
    bool proof;
    mtype what;
#ifdef TREE
    byte there, guest = NO_GUEST;
    bool knows, listens;
#endif
    {
        epoch = 0;
meet:
        atomic {
            result = FAILED;
            if
            :: secret == OTHERS -> mine = FOREIGN
            :: secret == OURS && me == number - 1 -> mine = ENDPOINT_OF(epoch)
            :: secret == OURS && me != number - 1 -> mine = TWINS_ENDPOINT(epoch)
#ifdef DECLINE
            :: mine = EMPTY
#endif
            fi
        }
reach:
        if
        :: atomic {
                listener != NOBODY && !server_open[2 * me + flip] ->
                c = 2 * me + flip;
                flip = 1 - flip;
                rank_open[c] = true;
                server_open[c] = true;
                host[c] = listener;
                up[c]!CLAIM, secret, number
            }
        :: atomic {
                listener == NOBODY && over ->
                assert(!AGREE || secret == OTHERS || !ok[epoch]);
                goto end
            }
#ifdef TIMEOUT
        :: goto end
#endif
        fi;
        hear(c, SECONDS_PASS);
        atomic {
            if
            :: what == WELCOME && PROVED
            :: else ->
#ifdef NO_RETRY
                if
                :: what == REFUSAL -> leave(c); goto end
                :: else
                fi;
#endif
                leave(c);
                what = 0; proof = 0;
                goto reach
            fi;
            say(c, BLOB, secret, mine)
        }
        hear(c, PATIENCE_ENDS);
        atomic {
            if
            :: what == POSITION && PROVED
            :: what == REPLY && PROVED -> result = word; leave(c); goto end
            :: else -> leave(c); goto end
            fi;
            u = c;
#ifdef TREE
            listens = word & 1;
            there = word >> 1;
            relay_open[me] = listens;
            word = 0
#endif
        }
#ifdef TREE
        if
        :: there -> there--; move()
        :: else
        fi;
        atomic {
            if
            :: listens -> word = word | (me + 1) << 1
            :: else
            fi;
            say(c, TAKE_POSITION, secret, word);
            if
            :: u != c -> leave(c)
            :: else
            fi;
            word = 0; there = 0;
            c = u
        }
        if
        :: listens -> listens = false; be_relay(); leave(c); goto end
        :: else
        fi;
#else
        say(c, TAKE_POSITION, secret, 0);
#endif
        hear(c, PATIENCE_ENDS);
        atomic {
            if
            :: what == REPLY && PROVED -> result = word
            :: else
            fi;
            leave(c)
        }
end:
        atomic {
            if
            :: secret == OURS -> conclude(number, mine)
            :: else
            fi;
            what = 0; proof = 0; word = 0; endpoints = 0; c = 0; u = 0;
            epoch++;
            if
            :: result == OK && epoch < MEETINGS -> goto meet
            :: else
            fi
        }
    } unless { dead[me] }
}

/* ---- What else there is ---------------------------------------------------------------------------------------- */

#ifdef STALE
#define ASKS(c) (server_open[c] && host[c] == OTHER && stage[c] == CLAIM_STAGE && len(up[c]) > 0)

/* It has the address before rank 0 does, and says what it likes. Then it ends. */
active proctype other_server()
{
    byte c;
    bool ended;

    do
    :: atomic {
            !ended && EACH(ASKS) -> FIND(ASKS);
            up[c]?_, _, _;
            stage[c] = LEAVING_STAGE;
            if
            :: true -> tell(c, REFUSAL, OTHERS, 0, 0)
            :: true -> tell(c, WELCOME, OTHERS, 0, 0); tell(c, REPLY, OTHERS, OK, FOREIGN)
            fi;
            c = 0
        }
    :: atomic {
            !ended ->
            ended = true;
            listener = NOBODY;
            for (c : 0 .. CONNS - 1) {
                if
                :: server_open[c] && host[c] == OTHER -> hang_up(c)
                :: else
                fi
            }
            c = 0
        }
    :: ended -> break
    od
}
#endif

#ifdef DEATH
/* One process dies, and all that it has open closes. */
active proctype death()
{
    byte c, who;

    atomic {
        if
        :: who = 0
        :: who = 1
        :: who = 4
        fi;
        dead[who] = true;
        if
        :: who == 4 ->
            for (c : 0 .. CONNS - 1) {
                if
                :: VISIT(c) -> hang_up(c)
                :: else
                fi
            }
            listener = NOBODY;
            over = true
        :: else ->
            leave(2 * who); leave(2 * who + 1); leave(CONNS + who);
            relay_open[who] = false;
            for (c : CONNS .. CONNS + 2) {
                if
                :: server_open[c] && host[c] == who -> hang_up(c)
                :: else
                fi
            }
        fi;
        c = 0;
        who = 0
    }
}
#endif

init
{
    atomic {
        run connector(0, 1, OURS);
#if RANKS > 2
        run connector(1, 2, OURS);
#endif
#if RANKS > 3
        run connector(2, 3, OURS);
#endif
#ifdef TWIN
        run connector(RANKS - 1, 1, OURS);
#endif
#ifdef STRAY
        run connector(RANKS - 1, 1, OTHERS);
#endif
    }
}
