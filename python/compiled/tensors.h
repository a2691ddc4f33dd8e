/* SPDX-License-Identifier: BSD-3-Clause */
/* tensors.h - tensors as calls of rondo.h want them: contiguous numbers; errors as torch's. */
#pragma once

#include "work.h"

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <rondo/rondo.h>

namespace rondo_torch
{

/* Throws what a function of rondo.h returned, with its sentence; that of a timeout names it. */
void check(rondo_result result, const rondo_comm *comm, Milliseconds timeout);

/* Throws unless all are dense and on the CPU. */
void require_dense(const Tensors &tensors);

/* A contiguous tensor to be read, the same one if it is contiguous. */
at::Tensor contiguous(const at::Tensor &tensor);

/* A tensor whose bytes or numbers are written by a call; give_back() copies them, if it is not
 * contiguous. */
struct Written {
    explicit Written(const at::Tensor &tensor);
    void give_back() const;

    at::Tensor whole, flat;
};

/* All elements, one tensor behind the other, and the opposite. */
at::Tensor joined(const Tensors &tensors);
void divide(const at::Tensor &whole, const Tensors &tensors);
/* All have as many elements as this one. */
bool alike(const at::Tensor &tensor, const Tensors &others);

/* The type of rondo.h for elements; throws if there are no reductions of it. */
rondo_type type_of(at::ScalarType type);

/* Elements as numbers of rondo.h: complex ones are two each. */
struct Numbers {
    Numbers(const at::Tensor &flat, const c10d::ReduceOp &op);

    void *data;
    size_t count;
    rondo_type type;
};

/* This holds the reduction of rondo.h for tensors like the given one, while it lives. */
class Operation
{
  public:
    Operation(rondo_comm *comm, const c10d::ReduceOp &op, const at::Tensor &tensor,
              rondo_type type);
    ~Operation();
    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;

    rondo_op op;

  private:
    rondo_comm *made_for_ = nullptr;
};

} // namespace rondo_torch
