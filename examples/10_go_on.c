/* SPDX-License-Identifier: BSD-3-Clause */
/* 10_go_on.c - four processes add up numbers, one of them is killed; the others agree on who that
 * was, make a communicator of themselves, and do the step again. docs/recovery.md explains it. */
#include <rondo/rondo.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, STEPS = 6, VICTIM = 2, LAST_STEP_OF_VICTIM = 3 };

/* One step of the work: what it changes is kept only if all ranks have done it. */
static rondo_result step(rondo_comm *comm, int number, int done, int *ret_sum)
{
    int mine = number + 1;

    if (number == VICTIM && done == LAST_STEP_OF_VICTIM)
        raise(SIGKILL);
    return rondo_all_reduce(&mine, ret_sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static rondo_result go_on(rondo_comm **comm, int number)
{
    int done = 0, sum = 0;

    while (done < STEPS) {
        uint64_t well = step(*comm, number, done, &sum) == RONDO_OK;
        int failed[RANKS], count;
        rondo_comm *smaller;
        rondo_result result;

        if (!well)
            rondo_comm_revoke(*comm); /* nobody waits in this step any more */
        if ((result = rondo_comm_agree(*comm, &well, failed, &count)))
            return result;
        done += well != 0; /* all ranks that are left have done it, or none keeps it */
        if (!count)
            continue;
        if (number == 0)
            printf("rank %d of %d has failed in step %d\n", failed[0], rondo_comm_size(*comm),
                   done);
        if ((result = rondo_comm_shrink(*comm, NULL, &smaller)))
            return result;
        rondo_comm_close(*comm);
        *comm = smaller;
    }
    printf("rank %d of %d, which was %d: the sum is %d\n", rondo_comm_rank(*comm),
           rondo_comm_size(*comm), number, sum);
    return RONDO_OK;
}

/* Rank 0 makes the id and writes it into the pipe, once for each of the others. */
static rondo_result share_id(const int *pipe_ends, int number, rondo_unique_id *id)
{
    rondo_result result = number ? RONDO_OK : rondo_unique_id_create(id);

    if (number)
        return read(pipe_ends[0], id, sizeof(*id)) == sizeof(*id) ? RONDO_OK : RONDO_ERROR_SYSTEM;
    for (int other = 1; other < RANKS && !result; other++)
        if (write(pipe_ends[1], id, sizeof(*id)) != sizeof(*id))
            result = RONDO_ERROR_SYSTEM;
    return result;
}

static int live(const int *pipe_ends, int number)
{
    rondo_unique_id id;
    rondo_comm *comm = NULL;
    rondo_result result = share_id(pipe_ends, number, &id);

    if (!result)
        result = rondo_comm_open_id(&id, RANKS, number, NULL, &comm);
    if (!result)
        result = go_on(&comm, number);
    if (result)
        fprintf(stderr, "%s\n", rondo_last_error(NULL));
    rondo_comm_close(comm);
    return result != RONDO_OK;
}

int main(void)
{
    int pipe_ends[2], status, wrong = 0;

    if (pipe(pipe_ends)) {
        perror("pipe");
        return 1;
    }
    for (int number = 0; number < RANKS; number++)
        if (fork() == 0) {
            if (number)
                close(pipe_ends[1]); /* so that reading ends if rank 0 has failed */
            return live(pipe_ends, number);
        }
    close(pipe_ends[1]);
    while (wait(&status) > 0)
        wrong += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    return wrong != 0;
}
