/* SPDX-License-Identifier: BSD-3-Clause */
#include <rondo/rondo.h>
#include <stdio.h>

int main(void)
{
    rondo_comm *comm;
    float sum[2] = {1, 2};
    rondo_result result = rondo_comm_open(NULL, &comm);

    if (!result)
        result = rondo_all_reduce(sum, sum, 2, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (result)
        return fprintf(stderr, "%s\n", rondo_last_error(NULL)), 1;
    printf("rank %d of %d: %g %g\n", rondo_comm_rank(comm), rondo_comm_size(comm), sum[0], sum[1]);
    rondo_comm_close(comm);
}
