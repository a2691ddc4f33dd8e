/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h - the library's locks, and the order in which a thread takes them.
 *
 * Threads that take the same locks in different orders wait for each other for ever, once in a long
 * while. So every lock has a level, and a thread waits only for a lock whose level is further down
 * the list than those of all locks that it holds. A build with assertions notes what each thread
 * holds, and the first lock out of order is a sentence in the log and a failed assertion, whether
 * or not another thread is in the way. Without assertions all of this is plain pthread calls.
 *
 * To try a lock doesn't wait and is allowed in any order; it counts as held from then on. Two locks
 * of one level are never waited for at a time, of different objects neither.
 */
#ifndef RONDO_BASE_LOCK_H
#define RONDO_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* From the level that is taken first to the one that is taken last, and what its locks guard.
 * docs/locks.md is made from it and says how to add one. */
#define FOR_EACH_LOCK(X)                                                                     \
    X(P2P, "messages with tags of a rank, and who waits for them")                           \
    X(WITHDRAWAL, "a registered range while it is taken back from peers")                    \
    X(COMM_LIST, "the list of this process's communicators")                                 \
    X(COMM_REGISTRATIONS, "the registered memory of a communicator")                         \
    X(THREADS_GATE, "that no thread of a step begins before all of them are there")          \
    X(ID_SERVERS, "the threads that serve unique ids")                                       \
    X(ID_WATCH, "who looks, while a unique id is served, after ranks that are to come")      \
    X(LAUNCH_SECRET, "the key that was made of the job's secret")                            \
    X(LAUNCH_CLAIMS, "the ranks that this process is")                                       \
    X(GPU_FINDING, "which device a communicator has")                                        \
    X(GPU_PLANS, "the plans of a communicator on its device, while a call is queued")        \
    X(GPU_QUEUEING, "calls being queued (readers) against freeing memory (the writer)")      \
    X(GPU_SEQUENCE, "the order of a communicator's calls among CUDA streams and graphs")     \
    X(GPU_STREAM, "the events that tell the end of calls on a CUDA stream")                  \
    X(GPU_BLOCKS, "the pinned blocks through which calls on a device go by way of the host") \
    X(GPU_JUDGED, "the list of communicators whose calls run on their devices")              \
    X(GPU_INFLIGHT, "the calls of a communicator that are on their way on its device")       \
    X(GPU_ERRORS, "the first error of a CUDA stream, its devices, and its calls under way")  \
    X(GPU_ABANDONED, "the plans that streams of broken communicators may still use")         \
    X(GPU_LEFT_BEHIND, "the device memory of closed ranks that peers may still write into")  \
    X(GPU_GATES, "which ranks of this process share a device, communicator by communicator") \
    X(VERBS_TRIALS, "the ways to memory of devices that were tried on an adapter")           \
    X(GPU_PINS, "the memory of arenas that is pinned for devices")                           \
    X(CUDA_LAUNCHERS, "the kernels that are loaded, by device")                              \
    X(CUDA_STOCK, "the memory of a device that is kept for later calls")                     \
    X(STREAM_LIST, "the list of this process's streams that have threads")                   \
    X(STREAM_JOBS, "the jobs of a stream that has a thread, and its first error")            \
    X(EVENT, "the moments of an event, and who uses it")                                     \
    X(TCP_NETWORK, "the connections of a rank over TCP")                                     \
    X(TCP_LIST, "the list of this process's TCP networks")                                   \
    X(VERBS_RAILS, "the RDMA ports that this process has open")                              \
    X(VERBS_MEMORY, "the memory that is registered with an adapter")                         \
    X(VERBS_DEVICE, "the last trouble that an adapter reported")                             \
    X(OPERATIONS, "the reduction operations that users made on a communicator")              \
    X(COMM_ERROR, "the last error of a communicator")                                        \
    X(HEAP, "the blocks of the shared heap")                                                 \
    X(PROCESSES, "the table of processes whose heaps are mapped")                            \
    X(SHOWN, "the pages on which ranks show their state")                                    \
    X(REGISTERED, "the registered memory that was moved into the shared heap")               \
    X(WITHDRAWN, "the memory that was taken back from peers")                                \
    X(TRACE, "the file of this process's trace, and the names in it")                        \
    X(LOADING, "that no child is born while a library is looked for")

#define LOCK_LEVEL(level, guards) LOCK_##level,
enum lock_level { FOR_EACH_LOCK(LOCK_LEVEL) LOCK_LEVELS };
#undef LOCK_LEVEL

/* Returns the name of a level in the list, and what its locks guard. */
const char *lock_level_name(enum lock_level level);
const char *lock_level_guards(enum lock_level level);

struct lock {
    pthread_mutex_t mutex;
    enum lock_level level;
};

/* Many readers or one writer. Readers of one don't nest: a writer that waits between the two would
 * stop the second. */
struct lock_shared {
    pthread_rwlock_t rwlock;
    enum lock_level level;
};

/* For locks that are there from the start of the program. */
#define LOCK_AT(level)                   \
    {                                    \
        PTHREAD_MUTEX_INITIALIZER, level \
    }
#define LOCK_SHARED_AT(level)             \
    {                                     \
        PTHREAD_RWLOCK_INITIALIZER, level \
    }

/* ---- What a checked build notes -------------------------------------------------------------- */

#ifdef NDEBUG
static inline void lock_note_wait(enum lock_level level)
{
    (void)level;
}
static inline void lock_note_held(const void *lock, enum lock_level level)
{
    (void)lock;
    (void)level;
}
static inline void lock_note_given(const void *lock)
{
    (void)lock;
}
#else
/* This thread may come to wait for it. */
void lock_note_wait(enum lock_level level);
void lock_note_held(const void *lock, enum lock_level level);
void lock_note_given(const void *lock);
#endif

/* ---- Locks ----------------------------------------------------------------------------------- */

static inline void lock_init(struct lock *lock, enum lock_level level)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->level = level;
}

static inline void lock_done(struct lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static inline void lock_take(struct lock *lock)
{
    lock_note_wait(lock->level);
    pthread_mutex_lock(&lock->mutex);
    lock_note_held(lock, lock->level);
}

/* Without waiting; was it free? */
static inline bool lock_try(struct lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex))
        return false;
    lock_note_held(lock, lock->level);
    return true;
}

static inline void lock_give(struct lock *lock)
{
    lock_note_given(lock);
    pthread_mutex_unlock(&lock->mutex);
}

/* Gives the lock until the condition is signalled, or for no reason. Taking it again waits, so it
 * is further down than all that the thread goes on holding. */
static inline void lock_wait(struct lock *lock, pthread_cond_t *changed)
{
    lock_note_given(lock);
    lock_note_wait(lock->level);
    pthread_cond_wait(changed, &lock->mutex);
    lock_note_held(lock, lock->level);
}

/* A condition for lock_wait_until(), whose clock is CLOCK_MONOTONIC. */
static inline void lock_init_condition(pthread_cond_t *changed)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Waits as lock_wait() does, but not for longer than until then; false: that moment has come. */
static inline bool lock_wait_until(struct lock *lock, pthread_cond_t *changed,
                                   const struct timespec *moment)
{
    int error;

    lock_note_given(lock);
    lock_note_wait(lock->level);
    error = pthread_cond_timedwait(changed, &lock->mutex, moment);
    lock_note_held(lock, lock->level);
    return !error;
}

static inline void lock_shared_init(struct lock_shared *lock, enum lock_level level)
{
    pthread_rwlock_init(&lock->rwlock, NULL);
    lock->level = level;
}

static inline void lock_shared_read(struct lock_shared *lock)
{
    lock_note_wait(lock->level);
    pthread_rwlock_rdlock(&lock->rwlock);
    lock_note_held(lock, lock->level);
}

static inline void lock_shared_write(struct lock_shared *lock)
{
    lock_note_wait(lock->level);
    pthread_rwlock_wrlock(&lock->rwlock);
    lock_note_held(lock, lock->level);
}

/* To write, without waiting; was it free? */
static inline bool lock_shared_try(struct lock_shared *lock)
{
    if (pthread_rwlock_trywrlock(&lock->rwlock))
        return false;
    lock_note_held(lock, lock->level);
    return true;
}

static inline void lock_shared_give(struct lock_shared *lock)
{
    lock_note_given(lock);
    pthread_rwlock_unlock(&lock->rwlock);
}

#endif
