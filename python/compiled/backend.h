/* SPDX-License-Identifier: BSD-3-Clause */
/* backend.h - the calls of a process group on tensors of the CPU, as torch.distributed has them. */
#pragma once

#include "messages.h"
#include "tensors.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rondo_torch
{

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Lists = std::vector<Tensors>;

class Backend : public c10d::Backend
{
  public:
    /* Collective over the ranks of the group, with the id that its rank 0 has made
     * (rondo/torch/meeting.py). */
    Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Milliseconds timeout,
            const std::string &id);
    ~Backend() override;

    const std::string getBackendName() const override;
    c10::intrusive_ptr<Options> getBackendOptions() override;
    uint64_t getSequenceNumberForGroup() override;
    void setSequenceNumberForGroup() override;
    void setTimeout(Milliseconds timeout) override;
    void abort() override;
    void shutdown() override;
    bool supportsTensorAlloc(c10::DeviceIndex device) override;
    /* In memory that peers map. */
    at::Tensor allocateTensor(long size, at::TensorOptions options) override;
    bool supportsCoalescing() const override;
    void startCoalescing() override;
    WorkPtr endCoalescing() override;

    /* reductions.cc */
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override;
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &options) override;
    WorkPtr allreduce_coalesced(Tensors &tensors,
                                const c10d::AllreduceCoalescedOptions &options) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &options) override;
    WorkPtr reduce_scatter(Tensors &outputs, Lists &inputs,
                           const c10d::ReduceScatterOptions &options) override;
    WorkPtr reduce_scatter_single(at::Tensor &output, at::Tensor &input,
                                  const c10d::ReduceScatterOptions &options) override;
    WorkPtr reduce_scatter_single_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &options) override;

    /* moving.cc */
    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override;
    WorkPtr allgather(Lists &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &options) override;
    WorkPtr allgather_coalesced(Lists &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &options) override;
    WorkPtr all_gather_single(at::Tensor &output, at::Tensor &input,
                              const c10d::AllgatherOptions &options) override;
    WorkPtr all_gather_single_coalesced(Tensors &outputs, Tensors &inputs,
                                        const c10d::AllgatherOptions &options) override;
    WorkPtr gather(Lists &outputs, Tensors &inputs, const c10d::GatherOptions &options) override;
    WorkPtr scatter(Tensors &outputs, Lists &inputs, const c10d::ScatterOptions &options) override;
    WorkPtr all_to_all_single(at::Tensor &output, at::Tensor &input,
                              std::vector<int64_t> &output_rows, std::vector<int64_t> &input_rows,
                              const c10d::AllToAllOptions &options) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
                     const c10d::AllToAllOptions &options) override;
    WorkPtr barrier(const c10d::BarrierOptions &options) override;

    /* backend.cc */
    void monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks) override;
    WorkPtr send(Tensors &tensors, int peer, int tag) override;
    WorkPtr recv(Tensors &tensors, int peer, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;

  private:
    void meet(const std::string &id);
    void end();
    /* Makes the call at once, if it is waited for and no other one is before it; else it is
     * queued. */
    WorkPtr start(const Call &call, Body body);
    /* The same for a call from one tensor to another, which is posted if it is short, nobody waits
     * for it at once, and no other one is before it. */
    WorkPtr start(const Call &call, rondo_collective collective, const c10d::ReduceOp *op,
                  Body body);
    bool may_post(const Call &call) const;
    rondo_call plain_call(const Call &call, rondo_collective collective, const c10d::ReduceOp *op);
    WorkPtr message(const MessageWork::Wish &wish);
    WorkPtr noted(WorkPtr work);
    void with_timeout(Milliseconds timeout, const Body &body);
    void wait_for_all(Milliseconds timeout, bool wait_all_ranks);
    int root_of(int64_t rank) const;
    void check(rondo_result result) const;

    using Reduce = std::function<rondo_result(const Numbers &numbers, rondo_op op)>;
    void reduce_in_place(const at::Tensor &tensor, const c10d::ReduceOp &op, const Reduce &call);
    void all_reduce(const at::Tensor &tensor, const c10d::ReduceOp &op);
    void sum_of_sparse(const at::Tensor &tensor);
    void reduce_scatter_flat(const at::Tensor &output, const at::Tensor &input,
                             const c10d::ReduceOp &op);
    void reduce_scatter_list(const at::Tensor &output, const Tensors &inputs,
                             const c10d::ReduceOp &op);
    void all_gather_flat(const at::Tensor &output, const at::Tensor &input);
    void all_gather_list(const Tensors &outputs, const at::Tensor &input);
    void exchange(const Tensors &outputs, const Tensors &inputs);
    void exchange_rows(const at::Tensor &output, const at::Tensor &input,
                       const std::vector<int64_t> &output_rows,
                       const std::vector<int64_t> &input_rows);

    c10::intrusive_ptr<c10d::Store> store_;
    std::atomic<Milliseconds> timeout_;
    c10::intrusive_ptr<Options> options_;
    rondo_comm *comm_ = nullptr;
    std::shared_ptr<Queue> queue_;
    std::shared_ptr<Messages> messages_;
    std::optional<std::vector<WorkPtr>> batch_;
    std::mutex posting_;
    WorkPtr posted_; /* the last one: its tensors must stay when nobody waits for it */
    std::atomic<uint64_t> sequence_{0};
    int64_t life_ = 0; /* how often this rank came to a group with this store */
    int barriers_ = 0;
    std::string barrier_key() const;
};

} // namespace rondo_torch
