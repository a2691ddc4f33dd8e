/* SPDX-License-Identifier: BSD-3-Clause */
/* module.cc - rondo_torch._backend for Python. Import rondo before it, which loads librondo. */
#include "backend.h"

#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

using StorePtr = c10::intrusive_ptr<c10d::Store>;

static c10::intrusive_ptr<rondo_torch::Backend>
create(StorePtr store, int rank, int size, std::chrono::milliseconds timeout, const std::string &id)
{
    return c10::make_intrusive<rondo_torch::Backend>(std::move(store), rank, size, timeout, id);
}

PYBIND11_MODULE(_backend, module)
{
    auto distributed = pybind11::module::import("torch._C._distributed_c10d");
    pybind11::class_<rondo_torch::Backend, c10::intrusive_ptr<rondo_torch::Backend>>(
        module, "Backend", distributed.attr("Backend"));

    module.attr("RONDO") = RONDO_VERSION;
    module.def("create", &create, pybind11::arg("store"), pybind11::arg("rank"),
               pybind11::arg("size"), pybind11::arg("timeout"), pybind11::arg("id"));
    module.def("set_title", &rondo_torch::set_title);
}
