/* SPDX-License-Identifier: BSD-3-Clause */
#include "standin/driver/pause.h"

#include "standin/driver/base/call.h"
#include "standin/driver/base/standin.h"

#include <signal.h>
#include <time.h>

enum { PATIENCE_MS = 1000 };

static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static bool paused;
static unsigned running;

/* Others wait, or write a word at most. */
static bool moves_data(const struct op *op)
{
    CUgraphNodeType type = op->kind->type;
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           type == CU_GRAPH_NODE_TYPE_MEMSET;
}

void pause_begin(const struct op *op)
{
    if (!moves_data(op))
        return;
    while (paused)
        call_wait(&over);
    running++;
}

void pause_end(const struct op *op)
{
    running -= moves_data(op);
}

void cuStandinStop(void)
{
    const struct timespec doze = {0, 1000 * 1000};
    call_lock();
    paused = true;
    for (int ms = 0; running && ms < PATIENCE_MS; ms++) {
        call_unlock();
        nanosleep(&doze, NULL);
        call_lock();
    }
    call_unlock();
    raise(SIGSTOP);
    call_lock();
    paused = false;
    pthread_cond_broadcast(&over);
    call_unlock();
}
