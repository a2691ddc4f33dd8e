/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.hpp - the part of rondo.hpp that is p2p.h: messages with tags. */
#ifndef RONDO_MESSAGES_HPP
#define RONDO_MESSAGES_HPP

#include "rondo/communicator.hpp"

namespace rondo
{

/* A send or a receive that was begun. Its end waits, but not for a message that has not come. */
class transfer : public owner<rondo_transfer, rondo_transfer_close>
{
  public:
    using owner::owner;
    /* False if it is not over after `seconds`; 0: not to wait, negative: for ever. */
    bool wait(double seconds = -1, rondo_envelope *ret_envelope = nullptr) const
    {
        return rondo::is_over(rondo_transfer_wait(get(), seconds, ret_envelope));
    }
};

/* Messages beside the order of collectives. Counts are in elements, envelopes in bytes. */
class p2p : public owner<rondo_p2p, rondo_p2p_close>
{
  public:
    using owner::owner;
    static p2p open(const communicator &comm)
    {
        return made<p2p>(rondo_p2p_open, comm.get());
    }
    template <typename T> transfer send(const T *input, std::size_t count, int peer, int tag) const
    {
        return made<transfer>(rondo_p2p_send, get(), input, count * sizeof(T), peer, tag);
    }
    template <typename T> transfer recv(T *output, std::size_t count, int source, int tag) const
    {
        return made<transfer>(rondo_p2p_recv, get(), output, count * sizeof(T), source, tag);
    }
    /* False if there is no such message after `seconds`. */
    bool probe(int source, int tag, double seconds, rondo_envelope *ret_envelope) const
    {
        return rondo::is_over(rondo_p2p_probe(get(), source, tag, seconds, ret_envelope));
    }
    void set_timeout(double seconds) const
    {
        rondo::check(rondo_p2p_set_timeout(get(), seconds));
    }
    void abort() const
    {
        rondo::check(rondo_p2p_abort(get()));
    }
};

} // namespace rondo

#endif
