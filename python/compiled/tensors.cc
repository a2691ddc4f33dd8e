/* SPDX-License-Identifier: BSD-3-Clause */
/* tensors.cc - tensors as calls of rondo.h want them: contiguous numbers; errors as torch's. */
#include "tensors.h"

#include <ATen/ATen.h>

namespace rondo_torch
{

/* ---- Errors ---------------------------------------------------------------------------------- */

static std::string sentence_of(rondo_result result, const rondo_comm *comm)
{
    std::string sentence = rondo_last_error(nullptr);

    if (sentence.empty() && comm)
        sentence = rondo_last_error(comm);
    return sentence.empty() ? rondo_result_string(result) : sentence;
}

void check(rondo_result result, const rondo_comm *comm, Milliseconds timeout)
{
    if (result == RONDO_OK)
        return;
    std::string text = "rondo: " + sentence_of(result, comm);
    if (result == RONDO_ERROR_TIMEOUT)
        text += " Timed out waiting " + std::to_string(timeout.count()) +
                "ms: the timeout of the group or the call is over.";
    TORCH_CHECK_VALUE(result != RONDO_ERROR_INVALID, text);
    TORCH_CHECK_NOT_IMPLEMENTED(result != RONDO_ERROR_UNSUPPORTED, text);
    TORCH_CHECK_WITH(DistBackendError, false, text);
}

/* ---- Layout ---------------------------------------------------------------------------------- */

void require_dense(const Tensors &tensors)
{
    for (const at::Tensor &tensor : tensors) {
        TORCH_CHECK_VALUE(tensor.device().is_cpu(),
                          "rondo: The backend takes tensors on the CPU, not on ", tensor.device(),
                          ": use init_process_group(\"cpu:rondo,cuda:nccl\").");
        TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "rondo: Dense tensors only, not ",
                          tensor.layout(), "; all_reduce takes sparse_coo as well.");
    }
}

at::Tensor contiguous(const at::Tensor &tensor)
{
    if (tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg())
        return tensor;
    return tensor.resolve_conj().resolve_neg().contiguous();
}

Written::Written(const at::Tensor &tensor) : whole(tensor), flat(contiguous(tensor))
{
}

void Written::give_back() const
{
    if (!flat.is_same(whole))
        whole.copy_(flat);
}

at::Tensor joined(const Tensors &tensors)
{
    Tensors flat;

    for (const at::Tensor &tensor : tensors)
        flat.push_back(tensor.reshape({-1}));
    return contiguous(at::cat(flat));
}

void divide(const at::Tensor &whole, const Tensors &tensors)
{
    int64_t at = 0;

    for (const at::Tensor &tensor : tensors) {
        tensor.copy_(whole.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
}

bool alike(const at::Tensor &tensor, const Tensors &others)
{
    for (const at::Tensor &other : others)
        if (other.numel() != tensor.numel())
            return false;
    return true;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

rondo_type type_of(at::ScalarType type)
{
    switch (type) {
    case at::kChar:
        return RONDO_INT8;
    case at::kByte:
    case at::kBool: /* 0 and 1 */
        return RONDO_UINT8;
    case at::kShort:
        return RONDO_INT16;
    case at::kUInt16:
        return RONDO_UINT16;
    case at::kInt:
        return RONDO_INT32;
    case at::kUInt32:
        return RONDO_UINT32;
    case at::kLong:
        return RONDO_INT64;
    case at::kUInt64:
        return RONDO_UINT64;
    case at::kHalf:
        return RONDO_FLOAT16;
    case at::kBFloat16:
        return RONDO_BFLOAT16;
    case at::kFloat:
    case at::kComplexFloat: /* two of them */
        return RONDO_FLOAT32;
    case at::kDouble:
    case at::kComplexDouble:
        return RONDO_FLOAT64;
    case at::kFloat8_e4m3fn:
        return RONDO_FLOAT8_E4M3;
    case at::kFloat8_e5m2:
        return RONDO_FLOAT8_E5M2;
    default:
        TORCH_CHECK_TYPE(false, "rondo: There are no reductions of ", type, ".");
    }
}

Numbers::Numbers(const at::Tensor &flat, const c10d::ReduceOp &op)
    : data(flat.data_ptr()), count((size_t)flat.numel() * (flat.is_complex() ? 2 : 1)),
      type(type_of(flat.scalar_type()))
{
    TORCH_CHECK_VALUE(!flat.is_complex() || c10d::isComplexViewAsRealAllowed(op),
                      "rondo: Complex numbers have sums and averages only.");
}

/* The reduction of rondo.h; of truth values, which are 0 and 1, one that keeps them so. */
static rondo_op plain_op(c10d::ReduceOp::RedOpType op, bool truth)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
        return truth ? RONDO_MAX : RONDO_SUM;
    case c10d::ReduceOp::AVG:
        TORCH_CHECK_VALUE(!truth, "rondo: There is no average of bool.");
        return RONDO_AVG;
    case c10d::ReduceOp::PRODUCT:
        return truth ? RONDO_MIN : RONDO_PROD;
    case c10d::ReduceOp::MIN:
        return RONDO_MIN;
    case c10d::ReduceOp::MAX:
        return RONDO_MAX;
    case c10d::ReduceOp::BAND:
        return RONDO_BAND;
    case c10d::ReduceOp::BOR:
        return RONDO_BOR;
    case c10d::ReduceOp::BXOR:
        return RONDO_BXOR;
    default:
        TORCH_CHECK_VALUE(false, "rondo: There is no reduction number ", (int)op, ".");
    }
}

/* The factor of a sum of products, as numbers of the tensor's type. */
static at::Tensor factor_of(const c10d::ReduceOp &op, const at::Tensor &tensor)
{
    auto *given = dynamic_cast<c10d::PreMulSumSupplement *>(op.supplement_.get());

    TORCH_CHECK_VALUE(given, "rondo: A sum of products has no factor.");
    at::ScalarType type = c10::toRealValueType(tensor.scalar_type());
    if (given->tensor_factor.defined())
        return given->tensor_factor.to(type).contiguous();
    return at::full({1}, given->double_factor, tensor.options().dtype(type));
}

Operation::Operation(rondo_comm *comm, const c10d::ReduceOp &given, const at::Tensor &tensor,
                     rondo_type type)
{
    if (given != c10d::ReduceOp::PREMUL_SUM) {
        op = plain_op(given, tensor.scalar_type() == at::kBool);
        return;
    }
    at::Tensor factor = factor_of(given, tensor);
    check(rondo_op_create_premul_sum(comm, factor.data_ptr(), type, &op), comm, {});
    made_for_ = comm;
}

Operation::~Operation()
{
    if (made_for_)
        rondo_op_destroy(made_for_, op);
}

} // namespace rondo_torch
