/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - user buffers as ranks tell each other of them. */
#ifndef RONDO_COMM_STATE_ADDRESS_H
#define RONDO_COMM_STATE_ADDRESS_H

#include "plan/exec.h"

enum address_kind {
    ADDRESS_NONE,   /* the buffer is not used */
    ADDRESS_HEAP,   /* an offset in the sender's shared heap */
    ADDRESS_PLAIN,  /* an address in the sender's process */
    ADDRESS_HIDDEN, /* peers can't reach it */
};

/* Bytes of this rank's buffers in the call. */
struct address_lengths {
    size_t input, output;
};
struct address_lengths address_lengths(const struct execution *x);

#endif
