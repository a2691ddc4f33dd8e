/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages.cc - point to point: each send or receive of torch as a transfer of rondo/p2p.h.
 *
 * The thread of the rondo_p2p moves messages, so there is none here: who asks a work looks at its
 * transfer. Only a future, which completes by itself, needs somebody who waits: a thread each.
 * rondo_p2p itself waits for ever, and wait() for the timeout of the group, as Gloo's does: a
 * receive that was posted long before its message is no failure.
 */
#include "messages.h"

#include "tensors.h"

#include <ATen/ATen.h>

#include <unistd.h>

namespace rondo_torch
{

/* ---- All of a group -------------------------------------------------------------------------- */

Messages::Messages(rondo_comm *comm) : home_(getpid())
{
    check(rondo_p2p_open(comm, &p2p), comm, {});
    rondo_p2p_set_timeout(p2p, 0);
}

Messages::~Messages()
{
    close();
}

void Messages::later(Body body)
{
    auto done = std::make_shared<std::atomic<bool>>(false);
    std::lock_guard<std::mutex> hold(lock_);

    helpers_.remove_if([](Helper &helper) {
        bool over = helper.done->load(std::memory_order_acquire);

        if (over)
            helper.thread.join();
        return over;
    });
    helpers_.push_back({std::thread([body = std::move(body), done]() mutable {
                            body();
                            body = nullptr; /* it may hold the last reference to the messages */
                            done->store(true, std::memory_order_release);
                        }),
                        done});
}

/* With the lock held: frees kept transfers that are over. */
void Messages::reap()
{
    kept_.remove_if([](const auto &kept) {
        bool over = rondo_transfer_wait(kept.first, 0, nullptr) != RONDO_IN_PROGRESS;

        if (over)
            rondo_transfer_close(kept.first);
        return over;
    });
}

void Messages::keep(rondo_transfer *transfer, const at::Tensor &tensor)
{
    std::lock_guard<std::mutex> hold(lock_);

    reap();
    kept_.emplace_back(transfer, tensor);
}

void Messages::abort()
{
    if (p2p)
        rondo_p2p_abort(p2p);
}

void Messages::close()
{
    std::list<Helper> helpers;

    if (p2p) /* the wait for what was sent has an end */
        rondo_p2p_set_timeout(p2p, (double)patience / 1000);
    rondo_p2p_close(p2p);
    p2p = nullptr;
    {
        std::lock_guard<std::mutex> hold(lock_);

        for (auto &kept : kept_)
            rondo_transfer_close(kept.first);
        kept_.clear();
        helpers.swap(helpers_);
    }
    for (auto &[thread, done] : helpers)
        if (thread.get_id() == std::this_thread::get_id() || home_ != getpid())
            thread.detach();
        else
            thread.join();
}

/* ---- One ------------------------------------------------------------------------------------- */

static Call call_of(const MessageWork::Wish &wish)
{
    if (wish.sends)
        return {c10d::OpType::SEND, "rondo:send", {wish.tensor}, {wish.tensor}};
    if (wish.peer == RONDO_ANY_SOURCE)
        return {c10d::OpType::RECVANYSOURCE, "rondo:recvAnySource", {wish.tensor}, {wish.tensor}};
    return {c10d::OpType::RECV, "rondo:recv", {wish.tensor}, {wish.tensor}};
}

MessageWork::MessageWork(int rank, uint64_t sequence, const Wish &wish,
                         std::shared_ptr<Messages> messages)
    : Waited(rank, sequence, call_of(wish)), wish_(wish), flat_(contiguous(wish.tensor.detach())),
      messages_(std::move(messages)), source_(wish.sends ? -1 : wish.peer)
{
    rondo_result result;

    if (wish.sends)
        result = rondo_p2p_send(messages_->p2p, flat_.data_ptr(), flat_.nbytes(), wish.peer,
                                wish.tag, &transfer_);
    else
        result = rondo_p2p_recv(messages_->p2p, flat_.data_ptr(), flat_.nbytes(), wish.peer,
                                wish.tag, &transfer_);
    check(result, nullptr, {});
}

MessageWork::~MessageWork()
{
    if (transfer_ && !settled_ && wish_.sends)
        messages_->keep(transfer_, flat_);
    else
        rondo_transfer_close(transfer_);
}

rondo_result MessageWork::look(double seconds)
{
    return rondo_transfer_wait(transfer_, seconds, nullptr);
}

void MessageWork::over(rondo_result result)
{
    rondo_envelope found = {};

    check(result, nullptr, patience());
    if (wish_.sends)
        return;
    (void)rondo_transfer_wait(transfer_, 0, &found); /* it is over, so this tells what came */
    source_ = found.source;
    TORCH_CHECK(found.bytes == flat_.nbytes(), "rondo: Rank ", found.source, " sent ", found.bytes,
                " bytes with tag ", found.tag, ", but the tensor that was given for them has ",
                flat_.nbytes(), ".");
    if (!flat_.is_alias_of(wish_.tensor))
        wish_.tensor.copy_(flat_);
}

Milliseconds MessageWork::patience() const
{
    return Milliseconds(messages_->patience);
}

void MessageWork::later(Body body)
{
    messages_->later(std::move(body));
}

int MessageWork::sourceRank() const
{
    return source_;
}

} // namespace rondo_torch
