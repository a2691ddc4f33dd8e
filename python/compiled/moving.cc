/* SPDX-License-Identifier: BSD-3-Clause */
/* moving.cc - calls of a process group that move tensors of any type, as bytes; the barrier. */
#include "backend.h"

#include <ATen/ATen.h>

#include <rondo/collectives.h>

namespace rondo_torch
{

using c10d::OpType;

WorkPtr Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options)
{
    int root = root_of(options.rootRank);

    require_dense(tensors);
    return start(
        {OpType::BROADCAST, "rondo:broadcast", tensors, tensors, options.asyncOp, options.timeout},
        [this, root, tensors] {
            for (const at::Tensor &tensor : tensors) {
                Written written(tensor);
                void *data = written.flat.data_ptr();

                check(rondo_broadcast(data, data, written.flat.nbytes(), RONDO_UINT8, root, comm_,
                                      nullptr));
                written.give_back();
            }
        });
}

/* ---- All-gather ------------------------------------------------------------------------------ */

void Backend::all_gather_flat(const at::Tensor &output, const at::Tensor &input)
{
    at::Tensor source = contiguous(input);
    Written written(output);

    check(rondo_all_gather(source.data_ptr(), written.flat.data_ptr(), source.nbytes(), RONDO_UINT8,
                           comm_, nullptr));
    written.give_back();
}

/* A tensor of each rank, of any lengths. */
void Backend::all_gather_list(const Tensors &outputs, const at::Tensor &input)
{
    at::Tensor source = contiguous(input);
    std::vector<size_t> bytes;
    int64_t count = 0;

    for (const at::Tensor &output : outputs) {
        bytes.push_back(output.numel() * source.itemsize());
        count += output.numel();
    }
    TORCH_CHECK_VALUE(outputs.at(rank_).numel() == source.numel(), "rondo: The input has ",
                      source.numel(), " elements, and this rank's output ", outputs[rank_].numel(),
                      ".");
    at::Tensor whole = at::empty({count}, source.options());
    if (alike(source, outputs))
        check(rondo_all_gather(source.data_ptr(), whole.data_ptr(), source.nbytes(), RONDO_UINT8,
                               comm_, nullptr));
    else
        check(rondo_all_gather_v(source.data_ptr(), whole.data_ptr(), bytes.data(), nullptr,
                                 RONDO_UINT8, comm_, nullptr));
    divide(whole, outputs);
}

static void check_gathered(const at::Tensor &output, const at::Tensor &input, int size)
{
    require_dense({output, input});
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(),
                      "rondo: output tensor must have the same type as input tensor.");
    TORCH_CHECK_VALUE(output.numel() == input.numel() * size, "rondo: output tensor size must be ",
                      "equal to world_size times input tensor size.");
}

WorkPtr Backend::all_gather_single(at::Tensor &output, at::Tensor &input,
                                   const c10d::AllgatherOptions &options)
{
    check_gathered(output, input, size_);
    return start({OpType::_ALLGATHER_BASE,
                  "rondo:_all_gather_base",
                  {input},
                  {output},
                  options.asyncOp,
                  options.timeout},
                 RONDO_ALL_GATHER, nullptr,
                 [this, output, input] { all_gather_flat(output, input); });
}

WorkPtr Backend::all_gather_single_coalesced(Tensors &outputs, Tensors &inputs,
                                             const c10d::AllgatherOptions &options)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "rondo: There are ", outputs.size(),
                      " outputs, but ", inputs.size(), " inputs.");
    for (size_t i = 0; i < outputs.size(); i++)
        check_gathered(outputs[i], inputs[i], size_);
    return start({OpType::COALESCED, "rondo:all_gather_into_tensor_coalesced", inputs, outputs,
                  options.asyncOp, options.timeout},
                 [this, outputs, inputs] {
                     for (size_t i = 0; i < outputs.size(); i++)
                         all_gather_flat(outputs[i], inputs[i]);
                 });
}

static Tensors flat_list(const Lists &lists)
{
    Tensors all;

    for (const Tensors &list : lists)
        all.insert(all.end(), list.begin(), list.end());
    return all;
}

static void check_lists(const Lists &lists, size_t count, size_t length)
{
    TORCH_CHECK_VALUE(lists.size() == count, "rondo: There are ", lists.size(),
                      " lists of tensors, and not ", count, ".");
    for (const Tensors &list : lists) {
        require_dense(list);
        TORCH_CHECK_VALUE(list.size() == length, "rondo: A list has ", list.size(),
                          " tensors, and not ", length, ".");
    }
}

WorkPtr Backend::allgather(Lists &outputs, Tensors &inputs, const c10d::AllgatherOptions &options)
{
    require_dense(inputs);
    check_lists(outputs, inputs.size(), (size_t)size_);
    return start({OpType::ALLGATHER, "rondo:all_gather", inputs, flat_list(outputs),
                  options.asyncOp, options.timeout},
                 [this, outputs, inputs] {
                     for (size_t i = 0; i < inputs.size(); i++)
                         all_gather_list(outputs[i], inputs[i]);
                 });
}

/* One list per rank, here, with a tensor for each input. */
WorkPtr Backend::allgather_coalesced(Lists &outputs, Tensors &inputs,
                                     const c10d::AllgatherOptions &options)
{
    Lists by_input(inputs.size());

    check_lists(outputs, (size_t)size_, inputs.size());
    for (size_t i = 0; i < inputs.size(); i++)
        for (const Tensors &of_rank : outputs)
            by_input[i].push_back(of_rank[i]);
    return allgather(by_input, inputs, options);
}

/* ---- Gather and scatter ---------------------------------------------------------------------- */

WorkPtr Backend::gather(Lists &outputs, Tensors &inputs, const c10d::GatherOptions &options)
{
    int root = root_of(options.rootRank);
    bool mine = root == rank_;

    require_dense(inputs);
    check_lists(outputs, mine ? 1 : 0, (size_t)size_);
    Tensors parts = mine ? outputs[0] : Tensors();
    TORCH_CHECK_VALUE(alike(inputs.at(0), parts), "rondo: gather takes tensors of one length.");
    return start({OpType::GATHER, "rondo:gather", inputs, parts, options.asyncOp, options.timeout},
                 [this, root, parts, input = inputs[0]] {
                     at::Tensor source = contiguous(input), whole;

                     if (root == rank_)
                         whole = at::empty({size_ * source.numel()}, source.options());
                     check(rondo_gather(source.data_ptr(),
                                        root == rank_ ? whole.data_ptr() : nullptr, source.nbytes(),
                                        RONDO_UINT8, root, comm_, nullptr));
                     if (root == rank_)
                         divide(whole, parts);
                 });
}

WorkPtr Backend::scatter(Tensors &outputs, Lists &inputs, const c10d::ScatterOptions &options)
{
    int root = root_of(options.rootRank);
    bool mine = root == rank_;

    require_dense(outputs);
    check_lists(inputs, mine ? 1 : 0, (size_t)size_);
    Tensors parts = mine ? inputs[0] : Tensors();
    TORCH_CHECK_VALUE(alike(outputs.at(0), parts), "rondo: scatter takes tensors of one length.");
    return start(
        {OpType::SCATTER, "rondo:scatter", parts, outputs, options.asyncOp, options.timeout},
        [this, root, parts, output = outputs[0]] {
            at::Tensor whole = root == rank_ ? joined(parts) : at::Tensor();
            Written written(output);

            check(rondo_scatter(root == rank_ ? whole.data_ptr() : nullptr, written.flat.data_ptr(),
                                written.flat.nbytes(), RONDO_UINT8, root, comm_, nullptr));
            written.give_back();
        });
}

/* ---- Everybody with everybody ---------------------------------------------------------------- */

/* Rows of each rank: as torch was given them, or all the same. */
static std::vector<int64_t> rows_of(const at::Tensor &tensor, const std::vector<int64_t> &given,
                                    int size)
{
    int64_t rows = tensor.dim() ? tensor.size(0) : 1, sum = 0;

    TORCH_CHECK_VALUE(!given.empty() || rows % size == 0, "rondo: ", rows,
                      " rows do not divide equally across a group of ", size, " ranks.");
    if (given.empty())
        return std::vector<int64_t>((size_t)size, rows / size);
    for (int64_t count : given)
        sum += count;
    TORCH_CHECK_VALUE(given.size() == (size_t)size && sum == rows, "rondo: Split sizes ",
                      at::IntArrayRef(given), " are not ", size, " whose sum is ", rows, ".");
    return given;
}

static std::vector<size_t> bytes_of(const at::Tensor &flat, const std::vector<int64_t> &rows)
{
    size_t row = flat.dim() && flat.size(0) ? flat.nbytes() / (size_t)flat.size(0) : flat.nbytes();
    std::vector<size_t> bytes;

    for (int64_t count : rows)
        bytes.push_back((size_t)count * row);
    return bytes;
}

void Backend::exchange_rows(const at::Tensor &output, const at::Tensor &input,
                            const std::vector<int64_t> &output_rows,
                            const std::vector<int64_t> &input_rows)
{
    at::Tensor source = contiguous(input);
    Written written(output);
    auto sent = bytes_of(source, input_rows), received = bytes_of(written.flat, output_rows);

    check(rondo_all_to_all_v(source.data_ptr(), sent.data(), nullptr, written.flat.data_ptr(),
                             received.data(), nullptr, RONDO_UINT8, comm_, nullptr));
    written.give_back();
}

WorkPtr Backend::all_to_all_single(at::Tensor &output, at::Tensor &input,
                                   std::vector<int64_t> &output_rows,
                                   std::vector<int64_t> &input_rows,
                                   const c10d::AllToAllOptions &options)
{
    bool even = output_rows.empty() && input_rows.empty();
    auto to = rows_of(output, output_rows, size_), from = rows_of(input, input_rows, size_);

    require_dense({output, input});
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(),
                      "rondo: Tensors are not equal in data type.");
    return start({OpType::ALLTOALL_BASE,
                  "rondo:all_to_all",
                  {input},
                  {output},
                  options.asyncOp,
                  options.timeout},
                 [this, even, to, from, output, input] {
                     if (!even) {
                         exchange_rows(output, input, to, from);
                         return;
                     }
                     at::Tensor source = contiguous(input);
                     Written written(output);

                     check(rondo_all_to_all(source.data_ptr(), written.flat.data_ptr(),
                                            source.nbytes() / (size_t)size_, RONDO_UINT8, comm_,
                                            nullptr));
                     written.give_back();
                 });
}

/* One send and one receive for each other rank, side by side; a message of nothing is none. */
void Backend::exchange(const Tensors &outputs, const Tensors &inputs)
{
    rondo_result result = rondo_group_start();

    for (int distance = 1; distance < size_ && !result; distance++) {
        int to = (rank_ + distance) % size_, from = (rank_ + size_ - distance) % size_;

        if (inputs[to].nbytes())
            result = rondo_send(inputs[to].data_ptr(), inputs[to].nbytes(), RONDO_UINT8, to, comm_,
                                nullptr);
        if (outputs[from].nbytes() && !result)
            result = rondo_recv(outputs[from].data_ptr(), outputs[from].nbytes(), RONDO_UINT8, from,
                                comm_, nullptr);
    }
    rondo_result last = rondo_group_end();
    check(result ? result : last);
}

WorkPtr Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &options)
{
    check_lists({outputs, inputs}, 2, (size_t)size_);
    return start(
        {OpType::ALLTOALL, "rondo:all_to_all", inputs, outputs, options.asyncOp, options.timeout},
        [this, outputs, inputs] {
            Tensors from, to;

            for (const at::Tensor &input : inputs)
                from.push_back(contiguous(input));
            for (const at::Tensor &output : outputs)
                to.push_back(contiguous(output));
            at::Tensor(to[rank_]).copy_(from[rank_].view(to[rank_].sizes()));
            exchange(to, from);
            for (size_t i = 0; i < outputs.size(); i++)
                if (!to[i].is_same(outputs[i]))
                    outputs[i].copy_(to[i]);
        });
}

/* ---- The barrier ----------------------------------------------------------------------------- */

WorkPtr Backend::barrier(const c10d::BarrierOptions &options)
{
    return start({OpType::BARRIER, "rondo:barrier", {}, {}, options.asyncOp, options.timeout},
                 [this] { check(rondo_barrier(comm_, nullptr)); });
}

} // namespace rondo_torch
