/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unix.h - meeting points of one host: abstract Unix sockets, and where another user
 * holds the name, a socket in a folder of ours.
 *
 * Names that follow from what a launcher says can be guessed, and whoever comes first has an
 * abstract name. So both ends ask the kernel for the user at the other one, and know a second
 * place: rondo/ in XDG_RUNTIME_DIR, else /tmp/rondo-UID, which nobody but this user can enter.
 */
#ifndef RONDO_COMM_RENDEZVOUS_UNIX_H
#define RONDO_COMM_RENDEZVOUS_UNIX_H

#include "comm/rendezvous/bootstrap.h"

#include <sys/types.h>

/* At "unix:NAME": a socket that listens, or -1 and errno. EADDRINUSE: our user has it already, or
 * it is not known who; EACCES: another user has it, and *ret_uid is who. `patient`: it was tried
 * for long enough, so go to the second place also where it is not known who has the first. */
int unix_listen(const char *address, bool patient, uid_t *ret_uid);
/* *ret_fd is -1, with errno, where nobody listens; RONDO_ERROR_AUTH: only another user does. */
rondo_result unix_connect(const char *address, double deadline, int *ret_fd);

#endif
