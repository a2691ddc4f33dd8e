/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - inside launch_read(): who am I (launch.c), what is this job (launch_job.c,
 * launch_pmix.c), where does it meet (launch_place.c).
 */
#ifndef RONDO_COMM_RENDEZVOUS_LAUNCH_H
#define RONDO_COMM_RENDEZVOUS_LAUNCH_H

#include "comm/rendezvous/bootstrap.h"

#include <sys/types.h>

enum { LAUNCH_IDENTITY = 512 };

struct launch_job {
    bool one_host; /* all ranks are on this host */
    /* The same text on every rank of the job and in no other job of this user on this host; "" if
     * the launcher gives nothing to make it of. */
    char identity[LAUNCH_IDENTITY];
};

/* A variable that is set and not empty, or NULL. */
const char *launch_variable(const char *name);
/* Read a variable that is a whole number from `least` on; *ret_value stays if it is not set. */
rondo_result launch_number(const char *name, int least, int *ret_value);

/* True if MASTER_ADDR is this host, whichever it is. */
bool launch_is_loopback(const char *host);

/* Describe the job by the environment of one launcher; fills local_rank and local_size if they
 * follow from it. launch->rank, size and the local variables are read. */
typedef rondo_result launch_describe(struct launch *launch, struct launch_job *job);
launch_describe launch_by_rondo, launch_by_torchrun, launch_by_openmpi, launch_by_mpich,
    launch_by_slurm;

/*
 * PMIx: has the launcher's daemon spoken to us? If so, it knows rank and size as well, and carries
 * bytes under a new name from rank 0 to all others. RONDO_ERROR_UNSUPPORTED: there is no library.
 */
bool launch_has_pmix(void);
launch_describe launch_by_pmix;
rondo_result launch_share(int rank, const char *key, void *bytes, size_t count);

/* launch_secret.c: is the secret long and random enough that it can't be found by trying? */
bool launch_secret_is_strong(const char *secret);
/* If not: a key that takes a guess as long to make as it takes us. Remembered. */
rondo_result launch_secret_stretch(const char *secret, unsigned char ret_key[BOOTSTRAP_SECRET]);

/* launch_claim.c: `parent` is the rank, and this process is not. */
rondo_result launch_refuse_child(pid_t parent, int rank);

/* Fills place, served, open, job and unnamed. */
rondo_result launch_place(struct launch *launch, const struct launch_job *job);

#endif
