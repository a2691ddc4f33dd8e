/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c - the pool grows as far as needed: whoever waits for another job must not keep that job
 * from running.
 *
 * Idle threads wait in a stack, each on a condition of its own. They are detached and never end:
 * when the process ends, so do they.
 */
#include "standin/driver/pool.h"

#include "standin/driver/base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct worker {
    struct worker *next; /* below it in the stack of idle ones */
    pthread_cond_t wake;
    void (*job)(void *argument); /* NULL: idle */
    void *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *idle;

static void *serve(void *context)
{
    struct worker *worker = context;
    guard_allow(true);
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!worker->job)
            pthread_cond_wait(&worker->wake, &lock);
        pthread_mutex_unlock(&lock);
        worker->job(worker->argument);
        pthread_mutex_lock(&lock);
        worker->job = NULL;
        worker->next = idle;
        idle = worker;
    }
    return NULL;
}

/* The program's signals are for its own threads; those of a crash stay where they arise. */
static int start(struct worker *worker)
{
    sigset_t ours, before;
    sigfillset(&ours);
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigdelset(&ours, crashes[i]);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &ours, &before);
    pthread_t thread;
    int failed = pthread_create(&thread, &attributes, serve, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}

void pool_run(void (*job)(void *argument), void *argument)
{
    pthread_mutex_lock(&lock);
    struct worker *worker = idle;
    if (worker) {
        idle = worker->next;
        worker->job = job;
        worker->argument = argument;
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&lock);
    if (worker)
        return;
    worker = calloc(1, sizeof *worker);
    if (worker) {
        pthread_cond_init(&worker->wake, NULL);
        worker->job = job;
        worker->argument = argument;
    }
    if (!worker || start(worker)) {
        fputs("CUDA stand-in: no thread for the device's work, check the limits of the process\n",
              stderr);
        abort();
    }
}
