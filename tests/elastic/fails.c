/* SPDX-License-Identifier: BSD-3-Clause */
/* fails.c - a rank of a job which fails as soon as it is there: those who begin it end with 7, and
 * newcomers with 1, as nobody is left to let them in. */
#include <rondo/elastic.h>

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    rondo_elastic *job = NULL;
    rondo_result result = rondo_elastic_open(NULL, NULL, &job);

    if (result)
        fprintf(stderr, "%s\n", rondo_ddp_last_error());
    if (result && getenv("RONDO_JOIN"))
        return 1;
    rondo_elastic_close(job);
    return 7;
}
