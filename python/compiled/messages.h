/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.h - point to point: each send or receive of torch as a transfer of rondo/p2p.h. */
#pragma once

#include "work.h"

#include <rondo/p2p.h>

#include <list>

namespace rondo_torch
{

/* The messages of a process group, for as long as there are transfers of them. */
class Messages
{
  public:
    /* Collective over the communicator. */
    explicit Messages(rondo_comm *comm);
    ~Messages();

    rondo_p2p *p2p = nullptr;
    std::atomic<int64_t> patience{0}; /* milliseconds that wait() waits unless it is told */

    /* Does this in a thread of its own. */
    void later(Body body);
    /* A send that nobody waits for goes on without its work. */
    void keep(rondo_transfer *transfer, const at::Tensor &tensor);
    void abort();
    /* Ends receives with an error, and waits for sends and threads. */
    void close();

  private:
    void reap();

    std::mutex lock_;
    std::list<std::pair<rondo_transfer *, at::Tensor>> kept_;
    struct Helper {
        std::thread thread;
        std::shared_ptr<std::atomic<bool>> done;
    };
    std::list<Helper> helpers_;
    pid_t home_; /* the process that has the threads: a forked child has none to join */
};

/* A send or a receive that was begun. */
class MessageWork : public Waited
{
  public:
    struct Wish {
        bool sends;
        at::Tensor tensor;
        int peer, tag; /* RONDO_ANY_SOURCE for a receive from anybody */
    };

    MessageWork(int rank, uint64_t sequence, const Wish &wish, std::shared_ptr<Messages> messages);
    ~MessageWork() override;

    int sourceRank() const override;

  private:
    rondo_result look(double seconds) override;
    void over(rondo_result result) override;
    Milliseconds patience() const override;
    void later(Body body) override;

    Wish wish_;
    at::Tensor flat_;
    std::shared_ptr<Messages> messages_;
    rondo_transfer *transfer_ = nullptr;
    std::atomic<int> source_;
};

} // namespace rondo_torch
