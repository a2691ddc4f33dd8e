/* SPDX-License-Identifier: BSD-3-Clause */
/* fails.c - a rank of a job which fails as soon as it is there: those who begin it end with 7, and
 * newcomers with 1, as nobody is left to let them in. */
#include <rondo/elastic.h>

#include <stdlib.h>

int main(void)
{
    rondo_elastic *job = NULL;

    if (rondo_elastic_open(NULL, NULL, &job) && getenv("RONDO_JOIN"))
        return 1;
    rondo_elastic_close(job);
    return 7;
}
