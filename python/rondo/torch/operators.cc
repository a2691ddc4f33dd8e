/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operators.cc - torch.ops.rondo.all_reduce_ and all_reduce of plain tensors, without Python in
 * between. They are kernels by torch's stable interface, a few C functions of libtorch_cpu that
 * stay the same, so that one library fits all versions that have them; ops.py takes it where they
 * are found: 2.15 has all, 2.10 lacks the one that tells an error's text. What is not plain goes on
 * to the operators in Python, and so does what has failed: there the call fails once more, with the
 * same sentence.
 *
 * A kernel gets its arguments on a stack of 64-bit values: handles of tensors and strings, which it
 * owns.
 */
#include <rondo/bindings.h>
#include <rondo/rondo.h>

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <stdint.h>
#include <string>
#include <string_view>

namespace
{

using Value = uint64_t;
using Handle = void *;

/* torch declares these functions in stable/c/shim.h and inductor/aoti_torch/c/shim.h. */
constexpr uint64_t kVersion = (uint64_t)2 << 56 | (uint64_t)10 << 48;
enum { kTypes = 12, kOps = 8 };

struct Torch {
    int32_t (*aoti_torch_get_data_ptr)(Handle, void **);
    int32_t (*aoti_torch_get_numel)(Handle, int64_t *);
    int32_t (*aoti_torch_get_dim)(Handle, int64_t *);
    int32_t (*aoti_torch_get_sizes)(Handle, int64_t **);
    int32_t (*aoti_torch_get_strides)(Handle, int64_t **);
    int32_t (*aoti_torch_get_dtype)(Handle, int32_t *);
    int32_t (*aoti_torch_get_layout)(Handle, int32_t *);
    int32_t (*aoti_torch_get_device_type)(Handle, int32_t *);
    int32_t (*aoti_torch_is_contiguous)(Handle, bool *);
    int32_t (*aoti_torch_empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t,
                                        int32_t, Handle *);
    int32_t (*aoti_torch_delete_tensor_object)(Handle);
    int32_t (*aoti_torch_library_init_impl)(const char *, const char *, const char *, uint32_t,
                                            Handle *);
    int32_t (*torch_library_impl)(Handle, const char *, void (*)(Value *, uint64_t, uint64_t),
                                  uint64_t);
    int32_t (*torch_call_dispatcher)(const char *, const char *, Value *, uint64_t);
    int32_t (*torch_string_c_str)(Handle, const char **);
    int32_t (*torch_delete_string)(Handle);
    const char *(*torch_exception_get_what_without_backtrace)(void);
} torch;

decltype(&rondo_all_reduce) reduce_all;
decltype(&rondo_group_is_open) group_is_open;
int32_t types[kTypes]; /* by rondo_type: torch's number of it */
int32_t strided, cpu;  /* torch's numbers of this layout and device */
const char *const ops[kOps] = {"sum", "prod", "min", "max", "avg", "band", "bor", "bxor"};

std::shared_mutex mutex;
std::map<std::string, rondo_comm *, std::less<>> comms; /* of groups, by name; needs the mutex */

/* ---- Arguments ------------------------------------------------------------------------------- */

Handle handle_of(Value value)
{
    return (Handle)(uintptr_t)value;
}

/* The text lives as long as the handle. */
std::string_view text_of(Value value)
{
    const char *text = "";

    torch.torch_string_c_str(handle_of(value), &text);
    return text;
}

rondo_comm *comm_of(std::string_view group)
{
    std::shared_lock<std::shared_mutex> held(mutex);
    auto found = comms.find(group);

    return found == comms.end() ? nullptr : found->second;
}

/* The number of the type if the library computes with it, or -1. */
int type_of(Handle x)
{
    int32_t type = -1;

    torch.aoti_torch_get_dtype(x, &type);
    for (int i = 0; i < kTypes; i++)
        if (types[i] == type)
            return i;
    return -1;
}

int op_of(std::string_view name)
{
    for (int i = 0; i < kOps; i++)
        if (name == ops[i])
            return i;
    return -1;
}

bool is_plain(Handle x)
{
    int32_t layout = -1, device = -1;
    bool contiguous = false;

    torch.aoti_torch_get_layout(x, &layout);
    torch.aoti_torch_get_device_type(x, &device);
    return layout == strided && device == cpu && !torch.aoti_torch_is_contiguous(x, &contiguous) &&
           contiguous;
}

/*
 * The number of the type of a tensor that a call takes as it is; else -1. In an open group a call
 * is collected, and Python keeps the tensors until it has run.
 */
int taken_as(Handle x)
{
    return !group_is_open() && is_plain(x) ? type_of(x) : -1;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* False: Python has to make it. The tensors are plain, of the same type and as long. */
bool all_reduce(Handle x, Handle out, int type, const Value *group_and_op)
{
    rondo_comm *comm = comm_of(text_of(group_and_op[0]));
    int op = op_of(text_of(group_and_op[1]));
    void *from = nullptr, *to = nullptr;
    int64_t count = 0;

    if (!comm || op < 0 || torch.aoti_torch_get_data_ptr(x, &from) ||
        torch.aoti_torch_get_data_ptr(out, &to) || torch.aoti_torch_get_numel(x, &count))
        return false;
    return reduce_all(from, to, (size_t)count, (rondo_type)type, (rondo_op)op, comm, nullptr) ==
           RONDO_OK;
}

void release(Value *stack)
{
    torch.aoti_torch_delete_tensor_object(handle_of(stack[0]));
    torch.torch_delete_string(handle_of(stack[1]));
    torch.torch_delete_string(handle_of(stack[2]));
}

/* Hands the arguments over. */
void let_python(const char *name, Value *stack)
{
    if (torch.torch_call_dispatcher(name, "", stack, kVersion))
        throw std::runtime_error(torch.torch_exception_get_what_without_backtrace());
}

void in_place(Value *stack, uint64_t, uint64_t)
{
    Handle x = handle_of(stack[0]);
    int type = taken_as(x);

    if (type >= 0 && all_reduce(x, x, type, stack + 1))
        release(stack);
    else
        let_python("rondo::_all_reduce_", stack);
}

/* A new tensor like a plain one, or NULL. */
Handle empty_like(Handle x)
{
    int64_t dim = 0, *sizes = nullptr, *strides = nullptr;
    int32_t type = 0;
    Handle made = nullptr;

    if (torch.aoti_torch_get_dim(x, &dim) || torch.aoti_torch_get_sizes(x, &sizes) ||
        torch.aoti_torch_get_strides(x, &strides) || torch.aoti_torch_get_dtype(x, &type) ||
        torch.aoti_torch_empty_strided(dim, sizes, strides, type, cpu, 0, &made))
        return nullptr;
    return made;
}

void with_output(Value *stack, uint64_t, uint64_t)
{
    Handle x = handle_of(stack[0]);
    int type = taken_as(x);
    Handle out = type >= 0 ? empty_like(x) : nullptr;

    if (out && all_reduce(x, out, type, stack + 1)) {
        release(stack);
        stack[0] = (Value)(uintptr_t)out;
        return;
    }
    if (out)
        torch.aoti_torch_delete_tensor_object(out);
    let_python("rondo::_all_reduce", stack);
}

/* ---- Finding torch --------------------------------------------------------------------------- */

template <typename Function> bool find(void *library, const char *name, Function *ret_function)
{
    *ret_function = (Function)dlsym(library, name);
    return *ret_function != nullptr;
}

/* One of torch's numbers, which functions tell. */
bool find_number(void *library, const char *name, int32_t *ret_number)
{
    int32_t (*number)(void);

    if (!find(library, name, &number))
        return false;
    *ret_number = number();
    return true;
}

bool find_numbers(void *library)
{
    static const char *const names[kTypes] = {
        "aoti_torch_dtype_int8",     "aoti_torch_dtype_uint8",   "aoti_torch_dtype_int16",
        "aoti_torch_dtype_uint16",   "aoti_torch_dtype_int32",   "aoti_torch_dtype_uint32",
        "aoti_torch_dtype_int64",    "aoti_torch_dtype_uint64",  "aoti_torch_dtype_float16",
        "aoti_torch_dtype_bfloat16", "aoti_torch_dtype_float32", "aoti_torch_dtype_float64"};

    for (int i = 0; i < kTypes; i++)
        if (!find_number(library, names[i], &types[i]))
            return false;
    return find_number(library, "aoti_torch_layout_strided", &strided) &&
           find_number(library, "aoti_torch_device_type_cpu", &cpu);
}

#define FIND(name) find(library, #name, &torch.name)

/* False: this torch is too old. */
bool find_torch()
{
    void *library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);

    return library && find_numbers(library) && FIND(aoti_torch_get_data_ptr) &&
           FIND(aoti_torch_get_numel) && FIND(aoti_torch_get_dim) && FIND(aoti_torch_get_sizes) &&
           FIND(aoti_torch_get_strides) && FIND(aoti_torch_get_dtype) &&
           FIND(aoti_torch_get_layout) && FIND(aoti_torch_get_device_type) &&
           FIND(aoti_torch_is_contiguous) && FIND(aoti_torch_empty_strided) &&
           FIND(aoti_torch_delete_tensor_object) && FIND(aoti_torch_library_init_impl) &&
           FIND(torch_library_impl) && FIND(torch_call_dispatcher) && FIND(torch_string_c_str) &&
           FIND(torch_delete_string) && FIND(torch_exception_get_what_without_backtrace);
}

} // namespace

/* ---- For ops.py ------------------------------------------------------------------------------ */

extern "C" {
RONDO_API int rondo_operators_register(void *all_reduce, void *is_open);
RONDO_API void rondo_operators_know(const char *group, rondo_comm *comm);
}

/* Gives both operators these kernels for tensors on the CPU; 0: this torch cannot have them. */
int rondo_operators_register(void *all_reduce, void *is_open)
{
    Handle library;

    reduce_all = (decltype(reduce_all))all_reduce;
    group_is_open = (decltype(group_is_open))is_open;
    return find_torch() &&
           !torch.aoti_torch_library_init_impl("rondo", "CPU", __FILE__, __LINE__, &library) &&
           !torch.torch_library_impl(library, "all_reduce_", in_place, kVersion) &&
           !torch.torch_library_impl(library, "all_reduce", with_output, kVersion);
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
