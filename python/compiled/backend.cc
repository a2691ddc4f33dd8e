/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.cc - a process group: meeting, how calls are made, messages, the end.
 *
 * A call that is waited for at once, with no other one before it, is made in the caller's thread,
 * which saves two changes of threads; a short one that nobody waits for yet is posted by it; any
 * other one is made in the group's thread, in order. Messages from rank to rank are no part of that
 * order (messages.h).
 */
#include "backend.h"

#include <rondo/bindings.h>

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

Backend::Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Milliseconds timeout,
                 const std::string &id)
    : c10d::Backend(rank, size), store_(std::move(store)), timeout_(timeout),
      options_(c10::make_intrusive<Options>(title(), timeout)),
      queue_(std::make_shared<Queue>(std::make_shared<Queue>()))
{
    WithoutPython waiting;

    /* A store may outlive a group, and have another one that counts from 0. */
    life_ = store_->add("monitored/came/" + std::to_string(rank), 1);
    meet(id);
    try {
        messages_ = std::make_shared<Messages>(comm_);
    } catch (...) {
        rondo_comm_close(comm_);
        throw;
    }
    messages_->patience = timeout.count();
}

void Backend::meet(const std::string &name)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_unique_id id;

    config.timeout = (double)timeout_.load().count() / 1000;
    TORCH_CHECK(name.size() == sizeof(id.bytes), "rondo: An id has ", sizeof(id.bytes),
                " bytes, this has ", name.size(), ".");
    memcpy(id.bytes, name.data(), sizeof(id.bytes));
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
    posted_.reset();
}

Backend::~Backend()
{
    end();
    WithoutPython waiting;
    queue_->close();
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
    auto back = [this, usual] {
        timeout_ = usual;
        rondo_comm_set_timeout(comm_, (double)usual.count() / 1000);
    };
    try {
        body();
    } catch (...) {
        back();
        throw;
    }
    back();
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

/* ---- Short calls ----------------------------------------------------------------------------- */

/* A call whose messages are on their way: who waits finishes it, or the next call of the group. */
class Posted : public Waited
{
  public:
    Posted(int rank, uint64_t sequence, const Call &call, rondo_request *request,
           Milliseconds usual, std::shared_ptr<Queue> queue)
        : Waited(rank, sequence, call), inputs_(call.inputs), request_(request), usual_(usual),
          queue_(std::move(queue))
    {
    }
    ~Posted() override
    {
        rondo_request_close(request_);
    }

  private:
    rondo_result look(double seconds) override
    {
        return request_ ? rondo_request_wait(request_, seconds) : RONDO_OK;
    }
    void over(rondo_result result) override
    {
        check(result, nullptr, usual_);
    }
    Milliseconds patience() const override
    {
        return kNoTimeout; /* the communicator has one */
    }
    void later(Body body) override
    {
        queue_->give(std::move(body));
    }

    Tensors inputs_;         /* torch keeps the outputs only */
    rondo_request *request_; /* NULL: it was over at once */
    Milliseconds usual_;
    std::shared_ptr<Queue> queue_; /* may outlive the group */
};

static bool is_short(const at::Tensor &tensor)
{
    enum { MOST = 1 << 16 }; /* bytes with which it is worth to ask */

    return tensor.layout() == at::kStrided && tensor.nbytes() <= MOST && tensor.is_contiguous() &&
           !tensor.is_conj() && !tensor.is_neg();
}

bool Backend::may_post(const Call &call) const
{
    return call.asynchronous && !batch_ && comm_ && call.timeout <= kNoTimeout && queue_->idle() &&
           is_short(call.inputs.at(0)) && is_short(call.outputs.at(0));
}

rondo_call Backend::plain_call(const Call &call, rondo_collective collective,
                               const c10d::ReduceOp *op)
{
    const at::Tensor &input = call.inputs.at(0), &output = call.outputs.at(0);
    rondo_call made = {sizeof(made),     collective,        RONDO_UINT8,    RONDO_SUM, 0,
                       input.data_ptr(), output.data_ptr(), input.nbytes(), comm_,     nullptr,
                       nullptr};

    if (op) {
        Numbers numbers(output, *op);

        made.type = numbers.type;
        made.count = numbers.count;
        made.op = Operation(comm_, *op, output, numbers.type).op;
    }
    return made;
}

WorkPtr Backend::start(const Call &call, rondo_collective collective, const c10d::ReduceOp *op,
                       Body body)
{
    WorkPtr before; /* goes when the lock is given: letting go of tensors may need Python's */
    rondo_request *request;

    if (!may_post(call) || (op && *op == c10d::ReduceOp::PREMUL_SUM))
        return start(call, std::move(body));
    rondo_call made = plain_call(call, collective, op);
    std::lock_guard<std::mutex> hold(posting_);
    rondo_result result = rondo_collective_post(&made, &request);
    if (result == RONDO_IN_PROGRESS)
        return start(call, std::move(body));
    check(result);
    before = std::exchange(posted_, c10::make_intrusive<Posted>(rank_, ++sequence_, call, request,
                                                                timeout_.load(), queue_));
    return posted_;
}

/* ---- Many calls as one ----------------------------------------------------------------------- */

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

std::string Backend::barrier_key() const
{
    return "monitored/" + std::to_string(life_) + "/" + std::to_string(barriers_) + "/";
}

/* Rank 0 looks who comes, in the store, so that it works beside a communicator that hangs or is
 * broken. */
void Backend::monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks)
{
    WithoutPython waiting;
    Milliseconds timeout = options.timeout < kNoTimeout ? timeout_.load() : options.timeout;

    barriers_++;
    std::string key = barrier_key();
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
    std::string key = barrier_key(), missing;

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
