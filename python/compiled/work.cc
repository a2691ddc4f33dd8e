/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.cc - the life of a call: run, end, tell.
 *
 * A future costs more than a small call, so it is made when somebody asks. Then either the asker
 * sees that the call has ended, or the end sees the future; tell() lets the first of both do it.
 */
#include "work.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <map>
#include <pthread.h>
#include <unistd.h>

namespace rondo_torch
{

static std::string &backend_name()
{
    static std::string name = "rondo";

    return name;
}

void set_title(const std::string &name)
{
    backend_name() = name;
}

const std::string &title()
{
    return backend_name();
}

/* The title under the name that was set; titles are kept, as profilers hold pointers to them. */
static const char *titled(const char *title)
{
    static std::mutex lock;
    static std::map<std::string, std::string> titles;

    if (backend_name() == "rondo" || !title)
        return title;
    std::lock_guard<std::mutex> hold(lock);
    std::string &other = titles[title];
    if (other.empty())
        other = backend_name() + (title + strlen("rondo"));
    return other.c_str();
}

/* A thread either makes calls, whose futures `teller` completes, or completes futures (tells). */
static thread_local struct {
    Queue *teller = nullptr;
    bool tells = false;
} here;

/* ---- A call ---------------------------------------------------------------------------------- */

static std::optional<Tensors> inputs_of(const Call &call)
{
    if (call.inputs.empty())
        return std::nullopt;
    return call.inputs;
}

Work::Work(int rank, uint64_t sequence, const Call &call)
    : c10d::Work(rank, call.type, titled(call.title), inputs_of(call)), outputs_(call.outputs),
      inference_(c10::InferenceMode::is_enabled()), sequence_(sequence)
{
}

void Work::make(const Body &body)
{
    std::exception_ptr error;

    try {
        c10::InferenceMode inference(inference_);
        at::NoGradGuard no_grad;

        body();
    } catch (...) {
        error = std::current_exception();
    }
    finish(std::move(error));
}

void Work::run(const Body &body)
{
    make(body);
    tell();
}

void Work::tell()
{
    std::unique_lock<std::mutex> hold(mutex_);

    if (!future_ || !completed_ || told_)
        return;
    told_ = true;
    hold.unlock();
    auto complete = [self = c10::intrusive_ptr<Work>::reclaim_copy(this)] {
        if (self->exception_)
            self->future_->setError(self->exception_);
        else
            self->future_->markCompleted(c10::IValue(self->outputs_));
    };
    if (is_inner_)
        std::thread(complete).detach();
    else if (here.teller)
        here.teller->give(complete);
    else
        complete();
}

[[noreturn]] static void time_is_over(Milliseconds timeout)
{
    C10_THROW_ERROR(DistBackendError, "rondo: Work.wait: Timed out waiting " +
                                          std::to_string(timeout.count()) +
                                          "ms: the call has not ended within this timeout and "
                                          "goes on.");
}

bool Work::wait(Milliseconds timeout)
{
    std::unique_lock<std::mutex> hold(mutex_);

    if (timeout <= kNoTimeout)
        cv_.wait(hold, [this] { return completed_; });
    else if (!cv_.wait_for(hold, timeout, [this] { return completed_; }))
        time_is_over(timeout);
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

Tensors Work::result()
{
    return outputs_;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    c10::intrusive_ptr<c10::ivalue::Future> future;

    {
        std::lock_guard<std::mutex> hold(mutex_);

        if (!future_) {
            future_ = c10::make_intrusive<c10::ivalue::Future>(
                c10::ListType::create(c10::TensorType::get()));
            is_inner_ = here.tells;
        }
        future = future_;
    }
    tell();
    return future;
}

uint64_t Work::getSequencenumber() const
{
    return sequence_;
}

void Work::abort()
{
    TORCH_CHECK(false, "rondo: One call cannot be aborted; the process group can.");
}

/* ---- A call without a thread ----------------------------------------------------------------- */

bool Waited::settle(double seconds)
{
    if (settled_.load(std::memory_order_acquire))
        return true;
    rondo_result result = look(seconds);
    if (result == RONDO_IN_PROGRESS)
        return false;
    {
        std::lock_guard<std::mutex> hold(settling_);

        if (settled_.load(std::memory_order_relaxed))
            return true;
        make([&] { over(result); });
        settled_.store(true, std::memory_order_release);
    }
    tell(); /* functions behind the future may ask for this work */
    return true;
}

bool Waited::isCompleted()
{
    return settle(0);
}

bool Waited::wait(Milliseconds timeout)
{
    if (timeout <= kNoTimeout)
        timeout = patience();
    if (!settle(timeout <= kNoTimeout ? -1 : (double)timeout.count() / 1000))
        time_is_over(timeout);
    return Work::wait(kNoTimeout);
}

c10::intrusive_ptr<c10::ivalue::Future> Waited::getFuture()
{
    auto future = Work::getFuture();

    if (!settle(0) && !asked_.exchange(true)) {
        auto self = c10::intrusive_ptr<Waited>::reclaim_copy(this);
        later([self] { self->settle(-1); });
    }
    return future;
}

/* ---- The thread ------------------------------------------------------------------------------ */

Queue::Queue(std::shared_ptr<Queue> teller) : teller_(std::move(teller))
{
}

bool Queue::idle() const
{
    return unfinished_.load(std::memory_order_acquire) == 0;
}

void Queue::give(Body job)
{
    std::lock_guard<std::mutex> hold(lock_);

    unfinished_.fetch_add(1, std::memory_order_relaxed);
    jobs_.push_back(std::move(job));
    if (!thread_.joinable())
        begin();
    given_.notify_one();
}

/* With the lock held. */
void Queue::begin()
{
    home_ = getpid();
    closing_ = false;
    thread_ = std::thread([self = shared_from_this()] { self->serve(); });
}

void Queue::serve()
{
    std::unique_lock<std::mutex> hold(lock_);

    pthread_setname_np(pthread_self(), "rondo-torch");
    here.teller = teller_.get();
    here.tells = !teller_;
    for (;;) {
        given_.wait(hold, [this] { return closing_ || !jobs_.empty(); });
        if (jobs_.empty())
            return;
        Body job = std::move(jobs_.front());
        jobs_.pop_front();
        hold.unlock();
        job();
        job = nullptr; /* tensors are given back before somebody hears that we are idle */
        unfinished_.fetch_sub(1, std::memory_order_release);
        hold.lock();
    }
}

/* Waits for the thread; true if another one began meanwhile, or may. */
bool Queue::join()
{
    {
        std::lock_guard<std::mutex> hold(lock_);

        if (!thread_.joinable())
            return false;
        closing_ = true;
        given_.notify_one();
    }
    /* A call may hold the last reference to its group, whose end then comes in this very thread. */
    if (thread_.get_id() == std::this_thread::get_id() || home_ != getpid()) {
        thread_.detach();
        return false;
    }
    thread_.join();
    std::lock_guard<std::mutex> hold(lock_);
    if (!jobs_.empty() &&
        !thread_.joinable()) /* given when the thread had looked for the last time */
        begin();
    return true;
}

void Queue::close()
{
    bool joined;

    do {
        joined = join();
        if (teller_)
            teller_->close();
    } while (joined);
}

/* ---- Many calls as one ----------------------------------------------------------------------- */

static Call of_parts(const std::vector<c10::intrusive_ptr<c10d::Work>> &parts)
{
    Call call{c10d::OpType::COALESCED, nullptr, {}, {}};

    for (const auto &part : parts)
        for (const at::Tensor &output : part->result())
            call.outputs.push_back(output);
    return call;
}

All::All(int rank, uint64_t sequence, std::vector<c10::intrusive_ptr<c10d::Work>> parts)
    : Work(rank, sequence, of_parts(parts)), parts_(std::move(parts))
{
}

bool All::isCompleted()
{
    for (const auto &part : parts_)
        if (!part->isCompleted())
            return false;
    return true;
}

bool All::isSuccess() const
{
    for (const auto &part : parts_)
        if (!part->isSuccess())
            return false;
    return true;
}

bool All::wait(Milliseconds timeout)
{
    for (const auto &part : parts_)
        part->wait(timeout);
    return true;
}

std::exception_ptr All::first_error() const
{
    for (const auto &part : parts_)
        if (part->exception())
            return part->exception();
    return nullptr;
}

/* The future of the last part that ends, without a thread: each tells when it ends, and counts. */
c10::intrusive_ptr<c10::ivalue::Future> All::getFuture()
{
    auto future = Work::getFuture();

    if (asked_.exchange(true))
        return future;
    if (parts_.empty())
        run([] {});
    auto self = c10::intrusive_ptr<All>::reclaim_copy(this);
    auto left = std::make_shared<std::atomic<size_t>>(parts_.size());
    for (const auto &part : parts_)
        part->getFuture()->addCallback([self, left](c10::ivalue::Future &) {
            if (left->fetch_sub(1) == 1)
                self->run([&self] {
                    if (std::exception_ptr error = self->first_error())
                        std::rethrow_exception(error);
                });
        });
    return future;
}

} // namespace rondo_torch
