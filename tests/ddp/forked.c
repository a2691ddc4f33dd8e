/* SPDX-License-Identifier: BSD-3-Clause */
/* forked.c - a child of a rank, forked in the middle of a pass as data loaders are: it is refused
 * in sentences, waits for nothing, and its parent's pass goes on. */
#include "bodies.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 100 /* seconds */ };

static bool is_refused(rondo_result result)
{
    return result == RONDO_ERROR_INVALID && (strstr(rondo_ddp_last_error(), "forked") ||
                                             strstr(rondo_ddp_last_error(), "failed before"));
}

/* The child's exit status is which of its calls was not refused. */
static int be_child(struct toy *toy)
{
    rondo_ddp_config config = toy_config();
    rondo_ddp *second;

    alarm(PATIENCE);
    if (!is_refused(rondo_ddp_gradient_ready(toy->ddp, 0)))
        return 1;
    if (!is_refused(rondo_ddp_wait(toy->ddp)))
        return 2;
    if (!is_refused(rondo_ddp_begin(toy->ddp, 1)))
        return 3;
    if (!is_refused(rondo_ddp_open(toy->comm, &toy->model, &config, &second)))
        return 4;
    rondo_ddp_close(toy->ddp);
    return 0;
}

static rondo_result raise_child(struct toy *toy)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) /* exit() has a checker of leaks look for the threads of the parent */
        _exit(be_child(toy));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return world_say(toy->sentence, RONDO_ERROR_SYSTEM, "no child");
    return status ? world_say(toy->sentence, RONDO_ERROR_INTERNAL,
                              "the child ended with status %x: %s", status, rondo_ddp_last_error())
                  : RONDO_OK;
}

static double sum_of_pass_1(const struct toy *toy, const void *context, int parameter, size_t i)
{
    double all = 0;

    for (int rank = 0; rank < toy->size; rank++)
        all += toy_gradient(rank, 1, parameter, i);
    return all;
}

rondo_result forked_child_is_refused(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);

    if (!result)
        result = toy_say(toy, rondo_ddp_begin(toy->ddp, 1), "begin");
    for (int p = TOY_PARAMETERS - 1; p >= 0 && !result; p--) {
        if (p == 0)
            result = raise_child(toy);
        if (p != TOY_FROZEN && !result)
            result = toy_announce(toy, p, 1);
    }
    if (!result)
        result = toy_say(toy, rondo_ddp_wait(toy->ddp), "wait");
    if (!result)
        result = toy_check(toy, sum_of_pass_1, NULL);
    toy_free(toy);
    return result;
}
