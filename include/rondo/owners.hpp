/* SPDX-License-Identifier: BSD-3-Clause */
/* owners.hpp - the part of rondo.hpp below communicators: errors, types of elements, owners. */
#ifndef RONDO_OWNERS_HPP
#define RONDO_OWNERS_HPP

#include "rondo/bindings.h"
#include "rondo/collectives.h"
#include "rondo/p2p.h"

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo
{

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The error of a call. what() is the sentence. */
class error : public std::runtime_error
{
  public:
    error(rondo_result result, int rank, const char *sentence)
        : std::runtime_error(*sentence ? sentence : rondo_result_string(result)), result_(result),
          rank_(rank)
    {
    }
    rondo_result result() const noexcept
    {
        return result_;
    }
    /* The rank in whose communicator the call was made; -1: it was made in none. */
    int rank() const noexcept
    {
        return rank_;
    }

  private:
    rondo_result result_;
    int rank_;
};

/* Throws the last error of this thread, unless `result` is none. For calls of the C functions. */
inline void check(rondo_result result, const rondo_comm *comm = nullptr)
{
    if (result == RONDO_IN_PROGRESS)
        throw error(result, rondo_comm_rank(comm), "");
    if (result)
        throw error(result, rondo_comm_rank(comm), rondo_last_error(nullptr));
}

/* True if it is over, false if it is still in progress; throws an error. For queries and waits. */
inline bool is_over(rondo_result result)
{
    if (result != RONDO_IN_PROGRESS)
        rondo::check(result);
    return result != RONDO_IN_PROGRESS;
}

/* ---- Types ----------------------------------------------------------------------------------- */

/*
 * type_of<T>::value is the rondo_type of elements of type T: integers by size and sign, float and
 * double. Whoever has a class for float16, bfloat16 or 8-bit floats specializes it, for instance
 *
 *     template <> struct rondo::type_of<bfloat16> {
 *         static constexpr rondo_type value = RONDO_BFLOAT16;
 *     };
 */
template <typename T> struct type_of {
    static_assert(std::is_integral<T>::value && !std::is_same<T, bool>::value && sizeof(T) <= 8,
                  "Rondo has no such type of elements; specialize rondo::type_of for it");
    static constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    static constexpr rondo_type value =
        static_cast<rondo_type>(RONDO_INT8 + 2 * width + (std::is_unsigned<T>::value ? 1 : 0));
};
template <> struct type_of<float> {
    static constexpr rondo_type value = RONDO_FLOAT32;
};
template <> struct type_of<double> {
    static constexpr rondo_type value = RONDO_FLOAT64;
};

/* A parameter from which T is not deduced, so that it may be nullptr where C ignores it. */
template <typename T> struct given {
    using type = T;
};

/* Settings with nothing set, to be changed and passed on. */
inline rondo_config config()
{
    rondo_config none = RONDO_CONFIG_INIT;

    return none;
}

/* ---- Owners ---------------------------------------------------------------------------------- */

/* A pointer to what CLOSE frees. The base of the owners below. */
template <typename T, void (*CLOSE)(T *)> class owner
{
  public:
    owner() = default;
    explicit owner(T *handle) noexcept : handle_(handle)
    {
    }
    T *get() const noexcept
    {
        return handle_.get();
    }
    /* The caller owns it from now on; this is empty. */
    T *release() noexcept
    {
        return handle_.release();
    }
    /* The end, before the destructor. */
    void close() noexcept
    {
        handle_.reset();
    }
    explicit operator bool() const noexcept
    {
        return static_cast<bool>(handle_);
    }

  private:
    struct closer {
        void operator()(T *handle) const noexcept
        {
            CLOSE(handle);
        }
    };
    std::unique_ptr<T, closer> handle_;
};

/* The owner that a function of C fills: made<stream>(rondo_stream_open). */
template <typename OWNER, typename FUNCTION, typename... ARGUMENTS>
OWNER made(FUNCTION function, ARGUMENTS... arguments)
{
    decltype(std::declval<OWNER>().get()) handle = nullptr;

    rondo::check(function(arguments..., &handle));
    return OWNER(handle);
}

/* A point on a stream. */
class event : public owner<rondo_event, rondo_event_close>
{
  public:
    using owner::owner;
    static event open()
    {
        return made<event>(rondo_event_open);
    }
    void record(rondo_stream *stream) const
    {
        rondo::check(rondo_event_record(get(), stream));
    }
    /* True if it has happened. */
    bool query() const
    {
        return rondo::is_over(rondo_event_query(get()));
    }
    void wait() const
    {
        rondo::check(rondo_event_wait(get()));
    }
    /* Throws the error of the last call before it; false if it has not happened after `seconds`. */
    bool outcome(double seconds = -1) const
    {
        return rondo::is_over(rondo_event_outcome(get(), seconds));
    }
};

/* Calls in order, in the background. */
class stream : public owner<rondo_stream, rondo_stream_close>
{
  public:
    using owner::owner;
    static stream open()
    {
        return made<stream>(rondo_stream_open);
    }
    void synchronize() const
    {
        rondo::check(rondo_stream_synchronize(get()));
    }
    bool query() const
    {
        return rondo::is_over(rondo_stream_query(get()));
    }
    void call(rondo_stream_function function, void *context) const
    {
        rondo::check(rondo_stream_call(get(), function, context));
    }
    void wait(const event &point) const
    {
        rondo::check(rondo_stream_wait_event(get(), point.get()));
    }
};

/* Frees memory; a destructor has nobody to tell of an error, which C's function would return. */
inline void memory_free(void *memory) noexcept
{
    (void)rondo_mem_free(memory);
}

/* Elements, zero at first, that peers on this node map: rondo_mem_alloc(). */
template <typename T> class memory : private owner<void, memory_free>
{
    static_assert(std::is_trivially_copyable<T>::value, "peers read it byte by byte");
    using base = owner<void, memory_free>;

  public:
    memory() = default;
    explicit memory(std::size_t count) : base(allocate(count)), size_(count)
    {
    }
    memory(memory &&other) noexcept : base(std::move(other)), size_(other.size_)
    {
        other.size_ = 0;
    }
    memory &operator=(memory &&other) noexcept
    {
        base::operator=(std::move(other));
        size_ = other.size_;
        other.size_ = this == &other ? size_ : 0;
        return *this;
    }
    using base::operator bool;
    /* The end, before the destructor. */
    void close() noexcept
    {
        base::close();
        size_ = 0;
    }
    T *data() const noexcept
    {
        return static_cast<T *>(base::get());
    }
    std::size_t size() const noexcept
    {
        return size_;
    }
    T &operator[](std::size_t i) const noexcept
    {
        return data()[i];
    }
    T *begin() const noexcept
    {
        return data();
    }
    T *end() const noexcept
    {
        return data() + size_;
    }

  private:
    static void *allocate(std::size_t count)
    {
        void *bytes = nullptr;

        if (count > static_cast<std::size_t>(-1) / sizeof(T))
            throw error(RONDO_ERROR_MEMORY, -1, "");
        rondo::check(rondo_mem_alloc(count * sizeof(T), &bytes));
        return bytes;
    }
    std::size_t size_ = 0;
};

/* A call that was begun and that whoever comes next finishes: rondo_collective_post(). */
class request : public owner<rondo_request, rondo_request_close>
{
  public:
    using owner::owner;
    /* False: nothing was begun, queue the call on a stream. True, and *ret is empty: it is over. */
    static bool post(const rondo_call &call, request *ret)
    {
        rondo_request *handle = nullptr;

        if (!rondo::is_over(rondo_collective_post(&call, &handle)))
            return false;
        *ret = request(handle);
        return true;
    }
    /* False if it is not over after `seconds`; an empty one is over. */
    bool wait(double seconds = -1) const
    {
        return !*this || rondo::is_over(rondo_request_wait(get(), seconds));
    }
};

} // namespace rondo

#endif
