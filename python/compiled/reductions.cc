/* SPDX-License-Identifier: BSD-3-Clause */
/* reductions.cc - calls of a process group that add up. */
#include "backend.h"

#include <ATen/ATen.h>

#include <rondo/collectives.h>

namespace rondo_torch
{

using c10d::OpType;
using c10d::ReduceOp;

void Backend::reduce_in_place(const at::Tensor &tensor, const ReduceOp &op, const Reduce &call)
{
    Written written(tensor);
    Numbers numbers(written.flat, op);
    Operation operation(comm_, op, tensor, numbers.type);

    check(call(numbers, operation.op));
    written.give_back();
}

/* ---- All-reduce and reduce ------------------------------------------------------------------- */

void Backend::all_reduce(const at::Tensor &tensor, const ReduceOp &op)
{
    if (tensor.layout() == at::kSparse) {
        TORCH_CHECK_VALUE(op == ReduceOp::SUM,
                          "rondo: Sparse tensors can be summed, and nothing else.");
        sum_of_sparse(tensor);
        return;
    }
    reduce_in_place(tensor, op, [this](const Numbers &numbers, rondo_op made) {
        return rondo_all_reduce(numbers.data, numbers.data, numbers.count, numbers.type, made,
                                comm_, nullptr);
    });
}

WorkPtr Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    for (const at::Tensor &tensor : tensors)
        if (tensor.layout() != at::kSparse)
            require_dense({tensor});
    Call call = {OpType::ALLREDUCE, "rondo:all_reduce", tensors,
                 tensors,           options.asyncOp,    options.timeout};
    Body body = [this, tensors, op = options.reduceOp] {
        for (const at::Tensor &tensor : tensors)
            all_reduce(tensor, op);
    };
    if (tensors.size() != 1)
        return start(call, std::move(body));
    return start(call, RONDO_ALL_REDUCE, &options.reduceOp, std::move(body));
}

WorkPtr Backend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    return allreduce(tensors, options);
}

WorkPtr Backend::allreduce_coalesced(Tensors &tensors,
                                     const c10d::AllreduceCoalescedOptions &options)
{
    return allreduce(tensors, options);
}

/* Each rank has elements at places of its own: all get all of them, and add them up. */
void Backend::sum_of_sparse(const at::Tensor &tensor)
{
    at::Tensor mine = tensor.detach().coalesce();
    at::Tensor about = at::tensor({mine._nnz(), mine.sparse_dim()}, at::kLong);
    at::Tensor counts = at::empty({size_, 2}, at::kLong);
    Tensors indices, values;

    all_gather_flat(counts, about);
    TORCH_CHECK_VALUE(counts.select(1, 1).eq(mine.sparse_dim()).all().item<bool>(),
                      "rondo: Ranks gave sparse tensors of different sparse dimensions.");
    for (int rank = 0; rank < size_; rank++) {
        int64_t count = counts[rank][0].item<int64_t>();
        std::vector<int64_t> shape = mine.values().sizes().vec();

        shape[0] = count;
        indices.push_back(at::empty({count, mine.sparse_dim()}, at::kLong));
        values.push_back(at::empty(shape, mine.values().options()));
    }
    all_gather_list(indices, mine.indices().t().contiguous());
    all_gather_list(values, mine.values().contiguous());
    /* Detached from what autograd knows, a sparse tensor would have indices of its own. */
    at::Tensor sum = at::sparse_coo_tensor(at::cat(indices).t(), at::cat(values), mine.sizes());
    at::Tensor(tensor).copy_(sum.coalesce());
}

WorkPtr Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
    int root = root_of(options.rootRank);

    require_dense(tensors);
    return start(
        {OpType::REDUCE, "rondo:reduce", tensors, tensors, options.asyncOp, options.timeout},
        [this, root, tensor = tensors.at(0), op = options.reduceOp] {
            reduce_in_place(tensor, op, [this, root](const Numbers &numbers, rondo_op made) {
                return rondo_reduce(numbers.data, root == rank_ ? numbers.data : nullptr,
                                    numbers.count, numbers.type, made, root, comm_, nullptr);
            });
        });
}

/* ---- Reduce-scatter -------------------------------------------------------------------------- */

void Backend::reduce_scatter_flat(const at::Tensor &output, const at::Tensor &input,
                                  const ReduceOp &op)
{
    at::Tensor source = contiguous(input);

    reduce_in_place(output, op, [this, &source](const Numbers &numbers, rondo_op made) {
        return rondo_reduce_scatter(source.data_ptr(), numbers.data, numbers.count, numbers.type,
                                    made, comm_, nullptr);
    });
}

/* A tensor for each rank, of any lengths. */
void Backend::reduce_scatter_list(const at::Tensor &output, const Tensors &inputs,
                                  const ReduceOp &op)
{
    at::Tensor source = joined(inputs);
    size_t parts = source.is_complex() ? 2 : 1;
    std::vector<size_t> counts;

    if (alike(output, inputs)) {
        reduce_scatter_flat(output, source, op);
        return;
    }
    for (const at::Tensor &input : inputs)
        counts.push_back((size_t)input.numel() * parts);
    TORCH_CHECK_VALUE(output.numel() == inputs.at(rank_).numel(), "rondo: The output has ",
                      output.numel(), " elements, and this rank's input ", inputs[rank_].numel(),
                      ".");
    reduce_in_place(output, op, [&](const Numbers &numbers, rondo_op made) {
        return rondo_reduce_scatter_v(source.data_ptr(), counts.data(), nullptr, numbers.data,
                                      numbers.type, made, comm_, nullptr);
    });
}

static void check_scattered(const at::Tensor &output, const at::Tensor &input, int size)
{
    require_dense({output, input});
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(),
                      "rondo: input tensor must be the same type as the output tensor.");
    TORCH_CHECK_VALUE(input.numel() == output.numel() * size,
                      "rondo: input tensor must be the same size as output size times world size.");
}

WorkPtr Backend::reduce_scatter_single(at::Tensor &output, at::Tensor &input,
                                       const c10d::ReduceScatterOptions &options)
{
    check_scattered(output, input, size_);
    return start(
        {OpType::_REDUCE_SCATTER_BASE,
         "rondo:_reduce_scatter_base",
         {input},
         {output},
         options.asyncOp,
         options.timeout},
        RONDO_REDUCE_SCATTER, &options.reduceOp,
        [this, output, input, op = options.reduceOp] { reduce_scatter_flat(output, input, op); });
}

WorkPtr Backend::reduce_scatter_single_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::ReduceScatterOptions &options)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "rondo: There are ", outputs.size(),
                      " outputs, but ", inputs.size(), " inputs.");
    for (size_t i = 0; i < outputs.size(); i++)
        check_scattered(outputs[i], inputs[i], size_);
    return start({OpType::COALESCED, "rondo:reduce_scatter_tensor_coalesced", inputs, outputs,
                  options.asyncOp, options.timeout},
                 [this, outputs, inputs, op = options.reduceOp] {
                     for (size_t i = 0; i < outputs.size(); i++)
                         reduce_scatter_flat(outputs[i], inputs[i], op);
                 });
}

WorkPtr Backend::reduce_scatter(Tensors &outputs, Lists &inputs,
                                const c10d::ReduceScatterOptions &options)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "rondo: There are ", outputs.size(),
                      " outputs, but ", inputs.size(), " lists of inputs.");
    require_dense(outputs);
    for (const Tensors &list : inputs) {
        require_dense(list);
        TORCH_CHECK_VALUE(list.size() == (size_t)size_, "rondo: ", list.size(),
                          " inputs for a group of ", size_, ".");
    }
    return start({OpType::REDUCE_SCATTER, "rondo:reduce_scatter", inputs.at(0), outputs,
                  options.asyncOp, options.timeout},
                 [this, outputs, inputs, op = options.reduceOp] {
                     for (size_t i = 0; i < outputs.size(); i++)
                         reduce_scatter_list(outputs[i], inputs[i], op);
                 });
}

} // namespace rondo_torch
