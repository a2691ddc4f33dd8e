/* SPDX-License-Identifier: BSD-3-Clause */
#include <rondo/check.h>
#include <stdio.h>

int main(void)
{
    rondo_comm *comm;
    float sum[2] = {1, 2};

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    RONDO_CHECK(rondo_all_reduce(sum, sum, 2, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    printf("rank %d of %d: %g %g\n", rondo_comm_rank(comm), rondo_comm_size(comm), sum[0], sum[1]);
    rondo_comm_close(comm);
}
