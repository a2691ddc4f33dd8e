/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door.h - a folder by which a job and its newcomers find each other.
 *
 *     members          every member holds a read lock on it
 *     knock.NAME       a newcomer, which holds a write lock on it
 *     invitation.NAME  what rank 0 has answered
 *     begun            the founders have met; until then the job needs each of them
 *     lost             `rondo run` says that a founder has ended before that
 *     over             a member has left after the end, with success; true once no member is left
 *
 * The locks are those of fcntl(): the kernel takes them back when a process ends, however it does,
 * so that nobody waits for the dead; and they work on network file systems.
 */
#ifndef RONDO_DDP_ELASTIC_DOOR_H
#define RONDO_DDP_ELASTIC_DOOR_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>

enum { DOOR_NAME = 32, DOOR_GUESTS = 64 };

struct door;

struct door_invitation {
    rondo_unique_id id;
    int32_t size, rank; /* of the communicator that the newcomer opens with the members */
};

/* `path` is copied; NULL or "": *ret_door is NULL, the wall has no door. */
rondo_result door_open(const char *path, struct door **ret_door);
void door_close(struct door *door); /* accepts NULL */

/* Be a member: newcomers may wait. */
rondo_result door_enter(struct door *door);
/* The names of those who knock and live, `most` at most; returns how many. NULL door: none. Whom
 * this process has invited before, and who knocks again, is refused and not among them. */
int door_look(struct door *door, char (*ret_names)[DOOR_NAME], int most);
rondo_result door_invite(struct door *door, const char *name, const struct door_invitation *what);
/* Begin a job: forget an earlier one at this door, and be a member. RONDO_ERROR_PEER: it cannot
 * begin, as another founder has ended. NULL door: nothing. */
rondo_result door_begin(struct door *door);
/* NULL door, or a process that did not open it: nothing. */
void door_say_begun(struct door *door);
void door_say_over(struct door *door);

/* Knock, and wait for the invitation; one of size 0 is a refusal. `again`: this newcomer could not
 * follow its last invitation. RONDO_ERROR_ABORTED: the job is over, RONDO_ERROR_PEER: no member is
 * left. */
rondo_result door_knock(struct door *door, bool again, struct door_invitation *ret_invitation);

#endif
