/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * times.h - all times that the library and its commands choose by themselves.
 *
 * They are seconds; milliseconds and nanoseconds have MS and NS in their names. What the comment of
 * a PATIENCE says has so long to happen, and a LOOK says who looks so often, and at what. What was
 * measured, and what a model assumes of links, is not here. Lint refuses times elsewhere. They are
 * macros, as kernels for devices and tables of constants need them as well.
 */
#ifndef RONDO_BASE_CALLER_TIMES_H
#define RONDO_BASE_CALLER_TIMES_H

#include <stdint.h>
#include <time.h>

/* ---- What users may set: defaults ------------------------------------------------------------ */

#define DEFAULT_TIMEOUT       "300" /* RONDO_TIMEOUT: ranks may compute for minutes between calls */
#define DEFAULT_LATE          "10"  /* RONDO_LATE: a wait is told in the log */
#define DEFAULT_TCP_TIMEOUT   "4"   /* RONDO_TCP_TIMEOUT: errors take less than 5 s */
#define DEFAULT_BENCH_TIMEOUT 60    /* rondo bench --timeout: until a silent rank is an error */
#define DEFAULT_PS_TIMEOUT    10    /* rondo ps --timeout: a host answers, by ssh */
#define DEFAULT_RUN_GRACE     5 /* rondo run --grace: ranks say what they noticed, better than it */
#define LONGEST_WAIT          1e9 /* half of a lifetime; more might not fit into a timespec */
#define LONGEST_SPIN          1.0 /* who spins does not look after its peers */

/* ---- How long we are patient with peers in calls --------------------------------------------- */

#define PATIENCE_BLAME    2.0 /* a peer's heart beats, else it may be blamed; at most timeout / 4 */
#define PATIENCE_SUSPECT  5.0 /* the same in an agreement, which leaves it out; timeout / 2 */
#define PATIENCE_INSIDE   0.1 /* a peer that runs is outside of memory of ours within a step */
#define PATIENCE_DEVICE   0.5 /* the same of its device, within some looks of its watchdog */
#define PATIENCE_SHARED   0.5 /* calls end that use what another, broken communicator registered */
#define PATIENCE_GRAPHS   0.05 /* kernels of graphs end, of which nobody knows whether they run */
#define PATIENCE_STREAM   1.0  /* a stream gets on that has all that it waits for */
#define PATIENCE_LET_GO   2.0  /* streams that were let go end */
#define PATIENCE_GATE     60.0 /* ranks of a busy machine may be late at a gate of one process */
#define PATIENCE_JUDGE    30.0 /* the watchdog finds out first; on a busy machine it may be late */
#define PATIENCE_NVLS     60.0 /* all calls of the check, else the team is held to be of no use */
#define PATIENCE_FREE     2.0  /* calls end, so that unused memory of their device can be freed */
#define PATIENCE_MAP      2.0  /* peers that are not held up map at once: then the log warns */
#define PATIENCE_MAP_SOON 1.0  /* a busy machine is no deadlock, and a graph keeps what it gets */
#define PATIENCE_FD       1    /* peers of a host pass descriptors at once: nobody waits long */

/* ---- How long we are patient with peers on networks ------------------------------------------ */

#define PATIENCE_TELL         0.5  /* ranks who compute may keep one that failed */
#define PATIENCE_CLOSE        60.0 /* closing may take, if a peer does not read */
#define PATIENCE_DIAL         1.5  /* an address answers, at least, however many the peer has */
#define PATIENCE_LEFTOVER     1.0  /* from the end of one line of a peer to that of the others */
#define PATIENCE_BUSY         2.0  /* a peer that had no room for us dials by itself */
#define PATIENCE_STARVE       2.0  /* a peer may stand at the door: errors take less than 5 s */
#define PATIENCE_TCP_EARLY_MS 500  /* the system gives a line up so much before the setting */
#define PATIENCE_TRY          2.0  /* what was written between two adapters has to be there */

/* ---- How long we are patient where ranks meet ------------------------------------------------ */

#define PATIENCE_DECLINE     5.0  /* who can't take part tells the others, and does not wait long */
#define PATIENCE_CORPSE      0.3  /* a process counts as ended whose sockets are closed already */
#define PATIENCE_CAUSE       1.0  /* why another host gave up a split is on its way on the parent */
#define PATIENCE_POSITION    2.0  /* a relay says where it listens, else its ranks wait elsewhere */
#define PATIENCE_ANSWER      10.0 /* a rank takes the answer, which may be long */
#define PATIENCE_WELCOME     10.0 /* challenge and welcome, which a meeting point sends at once */
#define PATIENCE_HANG_UP     2.0  /* a rank hangs up that has got a refusal, or all */
#define PATIENCE_HANG_UP_END 0.2  /* the same, when all the others are done */
#define PATIENCE_LINGER      0.5  /* ranks that are still on their way hear why the job failed */
#define PATIENCE_BLIND       1.0  /* connecting may keep us from looking at those whom we watch */
#define PATIENCE_REFUSED     1.0  /* the port of a unique id is closed: it was used before */
#define PATIENCE_GRACE       1.0  /* to hear the server's own timeout before ours, at least */
#define PATIENCE_GRACE_MOST  15.0 /* the same, at most; else timeout / 4 */
#define PATIENCE_IN_USE      2.0  /* an address that is in use is free again */
#define PATIENCE_ADDRESS     2.0  /* one of several addresses of a name answers */
#define PATIENCE_UNIX        1.0  /* whoever holds a name on this host takes a connection at once */
#define PATIENCE_MOVE        3.0  /* to get to a relay, else a rank stays at the meeting point */
#define PATIENCE_NEWS        2.0  /* the meeting point answers to news */
#define PATIENCE_MOMENT      1e-3 /* what a relay gives that has no time left: 0 is for ever */
#define PATIENCE_CLAIM       1.0  /* a process ends that has done its work, and its claim with it */
#define PATIENCE_QUIET       0.1  /* no rival of a job without a name has come meanwhile */
#define PATIENCE_RIVAL       1.0  /* one of them says what it wants */
#define PATIENCE_TWICE       2.0  /* the meeting point hears that a rank is claimed twice */
#define PATIENCE_ALONE       10.0 /* some rank of an elastic job is left to let a newcomer in */
#define PATIENCE_GROW        4.0  /* an elastic job does not stand still for one that died */

/* ---- What strangers may take at a port ------------------------------------------------------- */

#define STRANGER_PROVES   10.0 /* to prove that it knows the secret, and hand in what it has */
#define STRANGER_SILENT   0.1  /* to say hello in a crowd: a rank does so at once, or comes again */
#define STRANGER_DOUBTED  2.0  /* to prove something in a crowd, if all have said hello */
#define STRANGER_SHUT_OUT 0.02 /* nobody is let in, as there is no room or no descriptor */

/* ---- How often we look ----------------------------------------------------------------------- */

#define LOOK_PEERS         1e-3  /* who waits at its peers, times the ranks of a core */
#define LOOK_UNASKED       0.01  /* the same, who waits for no message with a tag, at most */
#define LOOK_MEMBERS       0.02  /* who opens a communicator at its members, who may end */
#define LOOK_MEETING       0.01  /* a meeting point at those whom it watches */
#define LOOK_DEADLINES     0.01  /* at deadlines of lines over TCP */
#define LOOK_ASK           0.03  /* a question to a silent peer over TCP */
#define LOOK_DIAL          0.05  /* a line is dialled again after a hang-up */
#define LOOK_KEEPALIVE     1     /* the system at a line without traffic; it knows whole seconds */
#define LOOK_PROBE         0.2   /* at a peer over verbs that is waited for */
#define LOOK_MISSED        0.05  /* who looks less often was stopped, and did not look */
#define LOOK_CALLS         1e-3  /* threads of a device: while calls are on their way */
#define LOOK_GRAPHS        0.01  /* the same, while graphs may run */
#define LOOK_IDLE          0.2   /* the same, while there is nothing to be seen */
#define LOOK_SERVE_MS      1     /* a rank at its networks that answers others, */
#define LOOK_SERVE_MOST_MS 8     /* and up to so many while nothing comes */
#define LOOK_BYE_MS        10    /* at lines that are read to their end, at most */
#define LOOK_TELL_MS       5     /* at lines on which a failure is told */
#define LOOK_CONTROLS_MS   1     /* at what a rank that leaves has said last */
#define LOOK_WORKERS_MS    10    /* rondo bench at workers that come up */
#define LOOK_REPLIES_MS    1000  /* rondo bench at its signals, at least so often */
#define LOOK_PS            0.1   /* rondo ps looks twice to see what moves */
#define LOOK_STOP_NS       50000 /* a kernel that waits at the host's word to stop */
#define LOOK_FLAGS_NS      20    /* a kernel at the flags that it waits for */
#define LOOK_ENDED_NS      1000  /* a kernel that has failed, for which the host has its time */

/* ---- What records of calls tell -------------------------------------------------------------- */

#define RECORD_FRESH 1.5  /* who waits looks every LOOK_PEERS, on a busy machine less often */
#define RECORD_LEFT  0.3  /* the same, of messages that a call which is done has left */
#define RECORD_TOLD  5.0  /* of ranks that find the same cause only the first one tells it */
#define RECORD_KEPT  3600 /* for `rondo ps`, after a process has ended */
#define RECORD_WAITS 0.1  /* of a wait that `rondo run` tells when it ends a job */

/* ---- How long commands wait for processes of their own --------------------------------------- */

#define PATIENCE_STACK      1.0  /* eu-stack stops the process that it looks at */
#define PATIENCE_TERM       2.0  /* rondo run: from SIGTERM to SIGKILL, and to the next one */
#define PATIENCE_JOIN       10   /* a running job answers to rondo run --join */
#define PATIENCE_TOPOLOGY   3    /* of a processor: nobody waits for a child that runs in circles */
#define PATIENCE_OPEN       60.0 /* rondo bench: a library comes up */
#define PATIENCE_FINISH     5.0  /* the same: it closes */
#define PATIENCE_SIGNAL     1.0  /* the same: a worker ends after a signal */
#define PATIENCE_OWN        2.0  /* the same: more than the library's own limit, to speak first */
#define PATIENCE_SURVIVORS  0.7  /* the same: survivors say what they noticed */
#define PATIENCE_END_STATUS 0.1  /* the same: a socket closes a little before its process is gone */

/* ---- How long rondo bench measures ----------------------------------------------------------- */

#define MEASURE_SIZE    0.2  /* default of --seconds: a size with one library */
#define MEASURE_MATRIX  0.04 /* the same of rondo bench matrix, where there are many */
#define MEASURE_KERNEL  0.05 /* the same of rondo bench kernels */
#define MEASURE_BATCH   1e-3 /* calls of a batch, far above what a look at the clock costs */
#define MEASURE_KERNELS 2e-3 /* the same of a batch of kernels */

/* ---- How long we doze ------------------------------------------------------------------------ */

#define DOZE_AFTER  20e-3  /* by then the peer is busy with something else, and pauses are dozes */
#define DOZE_TURNS  2e-4   /* the same where a host runs our processors in turns */
#define TURN_LEAST  1e-3   /* who stands still so long was stopped: few interrupts take longer */
#define TURN_MOST   0.1    /* a machine that stood still for longer was moved, and has no turns */
#define CORE_CHANGE 1.5e-6 /* until another rank has the core that it shares with this one */
#define DOZE_OWN    20e-6  /* for threads and streams of this process, which are about to be done */
#define DOZE_PEER   50e-6 /* for ranks and devices: the system's timers add as much by themselves */
#define DOZE_PART   0.01  /* of a wait: what dozes of all its ranks may add up to */
#define DOZE_NEWS   1e-3  /* for news of processes that end, which the system takes as long for */
#define DOZE_PROOF  5e-3  /* for a proof that a peer has ended, after all else is known */
#define DOZE_NAME   0.01  /* for an address, a name or a place that another process holds */
#define DOZE_KNOCK  0.02  /* for a meeting point that is not there after some attempts */
#define DOZE_RUMOUR 0.2   /* the same, if another one holds its address: it may last */
#define DOZE_WRITER 1e-4  /* for a rank that lost its processor while it wrote; then twice that */
#define DOZE_WORKER 2e-3  /* for workers of rondo bench that close their libraries */

static inline uint64_t clock_nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline double clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline struct timespec timespec_of(double seconds)
{
    struct timespec time = {(time_t)seconds, 0};

    time.tv_nsec = (long)(1e9 * (seconds - (double)time.tv_sec));
    return time;
}

static inline void doze_for(double seconds)
{
    struct timespec time = timespec_of(seconds);

    nanosleep(&time, NULL);
}

#endif
