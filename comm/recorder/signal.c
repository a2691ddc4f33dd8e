/* SPDX-License-Identifier: BSD-3-Clause */
/* signal.c - see signal.h. The thread lasts until the process ends. */
#include "comm/recorder/signal.h"

#include "base/caller/descriptor.h"
#include "base/log.h"
#include "base/setting.h"
#include "comm/recorder/table.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static atomic_int woken = -1; /* an eventfd */

static void wake(int number)
{
    int before = errno, file = atomic_load_explicit(&woken, memory_order_relaxed);
    const uint64_t one = 1;

    (void)number;
    if (file >= 0 && write(file, &one, sizeof(one)) < 0)
        errno = before; /* it is full: the thread is awake */
    errno = before;
}

static void *tell(void *argument)
{
    uint64_t count;

    (void)argument;
    while (read(atomic_load_explicit(&woken, memory_order_relaxed), &count, sizeof(count)) > 0 ||
           errno == EINTR)
        table_tell(NULL, "a signal asked for the calls in progress");
    return NULL;
}

static int wanted_signal(void)
{
    const char *word = setting_read_word(SETTING_RECORDER_SIGNAL);

    if (setting_check(SETTING_RECORDER_SIGNAL))
        return 0;
    return strcmp(word, "usr1") == 0 ? SIGUSR1 : strcmp(word, "usr2") == 0 ? SIGUSR2 : 0;
}

/* The thread takes no signals of the program's. */
static bool start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, tell, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

void recorder_listen(void)
{
    static atomic_flag listens = ATOMIC_FLAG_INIT;
    struct sigaction action = {.sa_handler = wake, .sa_flags = SA_RESTART}, before;
    int number = wanted_signal();

    if (!number || atomic_flag_test_and_set_explicit(&listens, memory_order_relaxed))
        return;
    if (sigaction(number, NULL, &before) || before.sa_handler != SIG_DFL) {
        log_warn("RONDO_RECORDER_SIGNAL: the program has a handler of its own for that signal");
        return;
    }
    atomic_store_explicit(&woken, descriptor_above(eventfd(0, EFD_CLOEXEC)), memory_order_relaxed);
    if (atomic_load_explicit(&woken, memory_order_relaxed) < 0 || !start_thread())
        log_warn("RONDO_RECORDER_SIGNAL: there is no thread for it");
    else
        sigaction(number, &action, NULL);
}
