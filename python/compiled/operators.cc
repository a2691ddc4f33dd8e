/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operators.cc - torch.ops.rondo.all_reduce_ and all_reduce of plain tensors as functions of C++,
 * which torch calls with its own tensors and strings: what rondo/torch/operators.cc does for every
 * torch, in fewer steps for this one. What is not plain goes on to the operators in Python, and so
 * does what has failed: there the call fails once more, with the same sentence.
 */
#include "tensors.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <rondo/bindings.h>
#include <rondo/rondo.h>

#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace
{

using Text = std::string_view;

const char *const ops[] = {"sum", "prod", "min", "max", "avg", "band", "bor", "bxor"};

std::shared_mutex mutex;
std::map<std::string, rondo_comm *, std::less<>> comms; /* of groups, by name; needs the mutex */

rondo_comm *comm_of(Text group)
{
    std::shared_lock<std::shared_mutex> held(mutex);
    auto found = comms.find(group);

    return found == comms.end() ? nullptr : found->second;
}

bool find_op(Text name, rondo_op *ret_op)
{
    for (size_t i = 0; i < std::size(ops); i++)
        if (name == ops[i]) {
            *ret_op = (rondo_op)i;
            return true;
        }
    return false;
}

/* The types that need nothing else done to them: no bool, no complex ones, no 8-bit floats. */
bool is_plain(at::ScalarType type)
{
    return c10::isIntegralType(type, false) ||
           (c10::isFloatingType(type) && c10::elementSize(type) > 1);
}

/* In an open group a call is collected, and Python keeps the tensors until it has run. */
bool is_plain(const at::Tensor &x)
{
    return x.layout() == at::kStrided && x.device().is_cpu() && x.is_contiguous() &&
           is_plain(x.scalar_type()) && !rondo_group_is_open();
}

/* False: Python has to make it. The tensors are plain, of the same type and as long. */
bool make(const at::Tensor &x, const at::Tensor &out, Text group, Text op)
{
    rondo_comm *comm = comm_of(group);
    rondo_op number;

    return comm && find_op(op, &number) &&
           rondo_all_reduce(x.const_data_ptr(), out.mutable_data_ptr(), (size_t)x.numel(),
                            rondo_torch::type_of(x.scalar_type()), number, comm,
                            nullptr) == RONDO_OK;
}

void all_reduce_(at::Tensor &x, c10::string_view group, c10::string_view op)
{
    static const auto python = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("rondo::_all_reduce_", "")
                                   .typed<void(at::Tensor &, c10::string_view, c10::string_view)>();

    if (!is_plain(x) || !make(x, x, group, op))
        python.call(x, group, op);
}

at::Tensor all_reduce(const at::Tensor &x, c10::string_view group, c10::string_view op)
{
    static const auto python =
        c10::Dispatcher::singleton()
            .findSchemaOrThrow("rondo::_all_reduce", "")
            .typed<at::Tensor(const at::Tensor &, c10::string_view, c10::string_view)>();
    at::Tensor out = is_plain(x) ? at::empty(x.sizes(), x.options()) : at::Tensor();

    return out.defined() && make(x, out, group, op) ? out : python.call(x, group, op);
}

} // namespace

/* ---- For rondo/torch/ops.py ------------------------------------------------------------------ */

extern "C" {
RONDO_API int rondo_operators_register(void *, void *);
RONDO_API void rondo_operators_know(const char *group, rondo_comm *comm);
}

/* Gives both operators these functions for tensors on the CPU, as long as the process lives. The
 * library's functions, which the caller names, are those that this module is linked with. */
int rondo_operators_register(void *, void *)
{
    static torch::Library library(torch::Library::IMPL, "rondo", c10::DispatchKey::CPU, __FILE__,
                                  __LINE__);

    library.impl("all_reduce_", all_reduce_);
    library.impl("all_reduce", all_reduce);
    return 1;
}

/* The communicator of a group, or NULL when it has none any more. */
void rondo_operators_know(const char *group, rondo_comm *comm)
{
    std::lock_guard<std::shared_mutex> held(mutex);

    if (comm)
        comms[group] = comm;
    else
        comms.erase(group);
}
