/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rondo.hpp - rondo.h, p2p.h and bindings.h for C++11 and newer. Headers only, nothing to link but
 * librondo.
 *
 *     rondo::communicator comm = rondo::communicator::open();
 *     comm.all_reduce(values.data(), values.size());        // in place; the type is the pointer's
 *
 * What the C headers say of shapes, order, threads and fork() holds here; names are theirs.
 *
 * Owners     communicator, stream, event, memory, registration, operation, p2p, transfer and
 *            request own what C closes. They can be moved and not copied; one that is empty, as
 *            after a move, is false. An owner keeps nothing else alive: registrations and
 *            operations end before their communicator, buffers stay until the calls on a stream
 *            are over. Declared after what they need, they go in the right order.
 * Errors     are exceptions of class error with result, rank and sentence. A destructor throws
 *            none, and waits as close does in C; abort() before it ends the waiting.
 * Threads    as in rondo.h: an owner is a pointer, and its functions may be called from several
 *            threads where those of C may. Moving it, and its end, are for one thread alone.
 * C          get() is the handle for the functions that are not here: rondo/ddp.h, rondo/cuda.h.
 */
#ifndef RONDO_RONDO_HPP
#define RONDO_RONDO_HPP

#include "rondo/owners.hpp"
#include "rondo/communicator.hpp"
#include "rondo/messages.hpp"

#endif
