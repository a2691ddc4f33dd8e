/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.cc - a process group: meeting, how calls are made, messages, the end.
 *
 * Rank 0 puts the id of a communicator into the group's store. A call that is waited for at once,
 * with no other one before it, is made in the caller's thread, which saves two changes of threads;
 * any other one in the group's thread, in order. Messages from rank to rank are no part of that
 * order (messages.h).
 */
#include "backend.h"

#include <Python.h>

namespace rondo_torch
{

/* Gives Python's lock while it lives, if this thread has it. */
class WithoutPython
{
  public:
    WithoutPython() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : NULL)
    {
    }
    ~WithoutPython()
    {
        if (state_)
            PyEval_RestoreThread(state_);
    }

  private:
    PyThreadState *state_;
};

/* ---- Beginning and end ----------------------------------------------------------------------- */

Backend::Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Milliseconds timeout)
    : c10d::Backend(rank, size), store_(std::move(store)), timeout_(timeout),
      options_(c10::make_intrusive<Options>(title(), timeout)), queue_(std::make_unique<Queue>())
{
    WithoutPython waiting;

    meet();
    try {
        messages_ = std::make_shared<Messages>(comm_);
    } catch (...) {
        rondo_comm_close(comm_);
        throw;
    }
    messages_->patience = timeout.count();
}

void Backend::meet()
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_unique_id id;

    config.timeout = (double)timeout_.load().count() / 1000;
    if (rank_ == 0) {
        check(rondo_unique_id_create(&id));
        store_->set("world", std::vector<uint8_t>(id.bytes, id.bytes + sizeof(id.bytes)));
    } else {
        std::vector<uint8_t> bytes = store_->get("world");
        TORCH_CHECK(bytes.size() == sizeof(id.bytes), "rondo: Rank 0 has the backend in Python, ",
                    "and rank ", rank_, " the compiled one: install rondo-torch for all or none.");
        memcpy(id.bytes, bytes.data(), sizeof(id.bytes));
    }
    check(rondo_comm_open_id(&id, size_, rank_, &config, &comm_));
}

void Backend::end()
{
    WithoutPython waiting; /* calls may end in functions of Python */

    if (!comm_)
        return;
    queue_->close();
    messages_->close();
    rondo_comm_close(comm_);
    comm_ = nullptr;
}

Backend::~Backend()
{
    end();
}

void Backend::shutdown()
{
    end();
}

void Backend::abort()
{
    WithoutPython waiting;

    if (!comm_)
        return;
    rondo_comm_abort(comm_);
    messages_->abort();
}

/* ---- What torch asks ------------------------------------------------------------------------- */

const std::string Backend::getBackendName() const
{
    return title();
}

c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions()
{
    return options_;
}

uint64_t Backend::getSequenceNumberForGroup()
{
    return sequence_;
}

/* Every rank counts from 0. */
void Backend::setSequenceNumberForGroup()
{
}

void Backend::setTimeout(Milliseconds timeout)
{
    options_->timeout = timeout;
    timeout_ = timeout;
    messages_->patience = timeout.count();
    check(rondo_comm_set_timeout(comm_, (double)timeout.count() / 1000));
}

bool Backend::supportsTensorAlloc(c10::DeviceIndex)
{
    return true;
}

at::Tensor Backend::allocateTensor(long size, at::TensorOptions options)
{
    void *memory = nullptr;

    options = options.device(at::kCPU);
    check(rondo_mem_alloc((size_t)size * options.dtype().itemsize(), &memory));
    return at::from_blob(
        memory, {size}, [](void *done) { rondo_mem_free(done); }, options);
}

/* ---- How calls are made ---------------------------------------------------------------------- */

void Backend::check(rondo_result result) const
{
    rondo_torch::check(result, comm_, timeout_);
}

int Backend::root_of(int64_t rank) const
{
    TORCH_CHECK_VALUE(rank >= 0 && rank < size_, "rondo: There is no root rank ", rank,
                      " in a group of ", size_, ".");
    return (int)rank;
}

void Backend::with_timeout(Milliseconds timeout, const Body &body)
{
    Milliseconds usual = timeout_;

    timeout_ = timeout;
    rondo_comm_set_timeout(comm_, (double)timeout.count() / 1000);
    try {
        body();
    } catch (...) {
        timeout_ = usual;
        throw;
    }
    timeout_ = usual;
    rondo_comm_set_timeout(comm_, (double)usual.count() / 1000);
}

WorkPtr Backend::noted(WorkPtr work)
{
    if (batch_)
        batch_->push_back(work);
    return work;
}

WorkPtr Backend::start(const Call &call, Body body)
{
    TORCH_CHECK_WITH(DistBackendError, comm_, "rondo: The process group was shut down.");
    auto work = c10::make_intrusive<Work>(rank_, ++sequence_, call);
    if (call.timeout > kNoTimeout && call.timeout != timeout_.load())
        body = [this, timeout = call.timeout, body = std::move(body)] {
            with_timeout(timeout, body);
        };
    if (!call.asynchronous && !batch_ && queue_->idle())
        work->run(body);
    else
        queue_->give([work, body = std::move(body)] { work->run(body); });
    return noted(work);
}

bool Backend::supportsCoalescing() const
{
    return true;
}

void Backend::startCoalescing()
{
    batch_.emplace();
}

WorkPtr Backend::endCoalescing()
{
    std::vector<WorkPtr> parts;

    if (batch_)
        parts = std::move(*batch_);
    batch_.reset();
    return c10::make_intrusive<All>(rank_, sequence_, std::move(parts));
}

/* ---- Messages -------------------------------------------------------------------------------- */

WorkPtr Backend::message(const MessageWork::Wish &wish)
{
    TORCH_CHECK_WITH(DistBackendError, comm_, "rondo: The process group was shut down.");
    TORCH_CHECK_VALUE(wish.peer == RONDO_ANY_SOURCE ||
                          (wish.peer >= 0 && wish.peer < size_ && wish.peer != rank_),
                      "rondo: Invalid destination or source rank ", wish.peer,
                      ": messages go from rank ", rank_, " to another one below ", size_, ".");
    require_dense({wish.tensor});
    return noted(c10::make_intrusive<MessageWork>(rank_, ++sequence_, wish, messages_));
}

WorkPtr Backend::send(Tensors &tensors, int peer, int tag)
{
    return message({true, tensors.at(0), peer, tag});
}

WorkPtr Backend::recv(Tensors &tensors, int peer, int tag)
{
    return message({false, tensors.at(0), peer, tag});
}

WorkPtr Backend::recvAnysource(Tensors &tensors, int tag)
{
    return message({false, tensors.at(0), RONDO_ANY_SOURCE, tag});
}

/* ---- Who is missing? ------------------------------------------------------------------------- */

/* Rank 0 looks who comes, in the store, so that it works beside a communicator that hangs or is
 * broken. */
void Backend::monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks)
{
    WithoutPython waiting;
    Milliseconds timeout = options.timeout < kNoTimeout ? timeout_.load() : options.timeout;
    std::string key = "monitored/" + std::to_string(++barriers_) + "/";

    if (rank_ == 0) {
        wait_for_all(timeout, wait_all_ranks);
        return;
    }
    store_->set(key + std::to_string(rank_), std::vector<uint8_t>{1});
    try {
        store_->wait({key + "passed"}, timeout);
    } catch (const std::exception &) {
        TORCH_CHECK(false, "Rank ", rank_, " successfully reached monitoredBarrier, but received ",
                    "errors while waiting for send/recv from rank 0: it did not pass within ",
                    timeout.count(), " ms. Please check rank 0 logs for faulty rank.");
    }
}

void Backend::wait_for_all(Milliseconds timeout, bool wait_all_ranks)
{
    std::string key = "monitored/" + std::to_string(barriers_) + "/", missing;

    TORCH_CHECK(timeout != kNoTimeout, "Rank 0 timed out in monitoredBarrier after 0 ms: give it ",
                "time for the others to come.");
    for (int rank = 1; rank < size_; rank++) {
        try {
            store_->wait({key + std::to_string(rank)},
                         missing.empty() ? timeout : Milliseconds(10));
        } catch (const std::exception &) {
            missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
            if (!wait_all_ranks)
                break;
        }
    }
    TORCH_CHECK(missing.empty(), "[Rank 0]: ", wait_all_ranks ? "Ranks " : "Rank ", missing,
                " failed to pass monitoredBarrier in ", timeout.count(),
                " ms: look at what they do.");
    store_->set(key + "passed", std::vector<uint8_t>{1});
}

} // namespace rondo_torch
