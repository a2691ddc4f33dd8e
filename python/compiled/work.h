/* SPDX-License-Identifier: BSD-3-Clause */
/* work.h - what a call of a process group returns, and the thread for queued calls. */
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rondo/rondo.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

namespace rondo_torch
{

using Tensors = std::vector<at::Tensor>;
using Milliseconds = std::chrono::milliseconds;

/* The call itself: it may be made in another thread, and throws its error. */
using Body = std::function<void()>;

/* This describes a call to torch and its profiler. */
struct Call {
    c10d::OpType type;
    const char *title; /* "rondo:all_reduce" */
    Tensors inputs, outputs;
    bool asynchronous = true;
    Milliseconds timeout = c10d::kUnsetTimeout;
};

/* The name before the colon of titles: torch's own tests look for that of the backend they test. */
void set_title(const std::string &name);
const std::string &title();

/* A call on its way. Its future gives the list of outputs, as hooks of DDP want it. */
class Work : public c10d::Work
{
  public:
    Work(int rank, uint64_t sequence, const Call &call);

    /* Make the call and end; the error is raised where somebody waits. */
    void run(const Body &body);

    bool wait(Milliseconds timeout) override;
    Tensors result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t getSequencenumber() const override;
    void abort() override;

  protected:
    /* Makes the call in the mode of the caller, without telling the future. */
    void make(const Body &body);
    /* Completes the future if there is one and the call has ended. Once. Functions behind it may
     * make calls and wait for them, so no thread does it that makes calls; and a future that such a
     * function has asked for is not completed behind that function. */
    void tell();

  private:
    Tensors outputs_;
    bool inference_; /* the caller is in torch.inference_mode() */
    uint64_t sequence_;
    /* With mutex_ held. */
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    bool told_ = false;
    bool is_inner_ = false; /* a function behind another future asked for this one */
};

/* A call that nobody makes in a thread: who asks for it goes on with it, or looks how far it is. */
class Waited : public Work
{
  public:
    using Work::Work;

    bool isCompleted() override;
    bool wait(Milliseconds timeout) override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  protected:
    /* Waits up to `seconds` (negative: for ever); false: it goes on. Who sees its end first ends
     * the work. */
    bool settle(double seconds);
    /* Waits like settle(), for what the library was asked; its result, or RONDO_IN_PROGRESS. */
    virtual rondo_result look(double seconds) = 0;
    /* What is left to do when it is over; throws its error. */
    virtual void over(rondo_result result) = 0;
    /* How long wait() waits unless it is told; kNoTimeout: for ever. */
    virtual Milliseconds patience() const = 0;
    /* Somebody wants the future: does this, which waits, in another thread. */
    virtual void later(Body body) = 0;

    std::atomic<bool> settled_{false};

  private:
    std::mutex settling_;
    std::atomic<bool> asked_{false};
};

/*
 * A thread that makes calls in the order in which they were given; it begins with the first one. It
 * completes no futures; its teller does, which is a queue itself and has none. The thread holds its
 * queue until close(), which the owner has to call: the owner may end in that very thread.
 */
class Queue : public std::enable_shared_from_this<Queue>
{
  public:
    explicit Queue(std::shared_ptr<Queue> teller = nullptr);
    /* True if no call is waiting or under way. */
    bool idle() const;
    void give(Body job);
    /* Waits for all calls, also for those that functions behind their futures make. The caller must
     * not hold Python's lock, which calls may need to end. */
    void close();

  private:
    void begin();
    void serve();
    bool join();

    std::shared_ptr<Queue> teller_;
    std::mutex lock_;
    std::condition_variable given_;
    std::deque<Body> jobs_;
    std::atomic<int> unfinished_{0};
    bool closing_ = false;
    std::thread thread_;
    pid_t home_ = 0; /* the process that has the thread: a forked child has none to join */
};

/* The calls between startCoalescing() and endCoalescing() as one. */
class All : public Work
{
  public:
    All(int rank, uint64_t sequence, std::vector<c10::intrusive_ptr<c10d::Work>> parts);

    bool isCompleted() override;
    bool isSuccess() const override;
    bool wait(Milliseconds timeout) override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  private:
    std::exception_ptr first_error() const;

    std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
    std::atomic<bool> asked_{false};
};

} // namespace rondo_torch
