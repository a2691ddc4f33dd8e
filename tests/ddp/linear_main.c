/* SPDX-License-Identifier: BSD-3-Clause */
/* linear_main.c - the linear model and the join as a program of its own, for `rondo run`. */
#include "bodies.h"

#include <stdio.h>

int main(void)
{
    static char sentence[WORLD_SENTENCE];
    rondo_comm *comm = NULL;
    rondo_result result = rondo_comm_open(NULL, &comm);

    if (result)
        world_say(sentence, result, "%s", rondo_last_error(NULL));
    else if (rondo_comm_size(comm) < 2)
        result = world_say(sentence, RONDO_ERROR_INVALID, "start two ranks or more");
    if (!result)
        result = linear_learns_like_one_process(comm, NULL, sentence);
    if (!result)
        result = joins_by_remaining(comm, NULL, sentence);
    if (!result)
        result = mistakes_nan(comm, NULL, sentence);
    if (result)
        fprintf(stderr, "%s\n", sentence);
    rondo_comm_close(comm);
    return result != RONDO_OK;
}
