/* SPDX-License-Identifier: BSD-3-Clause */
/* communicator.hpp - the part of rondo.hpp that is communicators, and what belongs to them. */
#ifndef RONDO_COMMUNICATOR_HPP
#define RONDO_COMMUNICATOR_HPP

#include "rondo/owners.hpp"

namespace rondo
{

/*
 * Ranks that call together. Collectives take pointers, counts of elements as in the table of
 * rondo.h, and the type from the pointers; a null stream means: return when the output is complete.
 * Functions that make a communicator are not for groups.
 */
class communicator : public owner<rondo_comm, rondo_comm_close>
{
  public:
    using owner::owner;

    /* ---- Starting and ending ---- */

    static communicator open(const rondo_config *config = nullptr)
    {
        return made<communicator>(rondo_comm_open, config);
    }
    static communicator open(const rondo_unique_id &id, int size, int rank,
                             const rondo_config *config = nullptr)
    {
        return made<communicator>(rondo_comm_open_id, &id, size, rank, config);
    }
    /* Element r of the result is rank r's, each for a thread. */
    static std::vector<communicator> open_all(int size, const rondo_config *config = nullptr)
    {
        std::vector<rondo_comm *> handles(size > 0 ? static_cast<std::size_t>(size) : 1);
        std::vector<communicator> all(handles.size());

        rondo::check(rondo_comm_open_all(size, config, handles.data()));
        for (std::size_t r = 0; r < all.size(); r++)
            all[r] = communicator(handles[r]);
        return all;
    }
    static rondo_unique_id unique_id()
    {
        rondo_unique_id id;

        rondo::check(rondo_unique_id_create(&id));
        return id;
    }
    /* Empty where `color` is -1. */
    communicator split(int color, int key, const rondo_config *config = nullptr) const
    {
        return derived(rondo_comm_split, color, key, config);
    }
    communicator dup() const
    {
        return derived(rondo_comm_dup);
    }
    communicator open_among(const std::vector<int> &ranks,
                            const rondo_config *config = nullptr) const
    {
        return derived(rondo_comm_open_among, ranks.data(), static_cast<int>(ranks.size()), config);
    }
    void finalize() const
    {
        checked(rondo_comm_finalize(get()));
    }
    void abort() const
    {
        checked(rondo_comm_abort(get()));
    }

    /* ---- Going on after a failure ---- */

    /* The ranks that have failed, ascending, the same on all that are left. */
    std::vector<int> agree(uint64_t *flags = nullptr) const
    {
        std::vector<int> ranks = room();
        int count = 0;

        checked(rondo_comm_agree(get(), flags, ranks.data(), &count));
        ranks.resize(static_cast<std::size_t>(count));
        return ranks;
    }
    /* Those that this rank knows of. */
    std::vector<int> failed() const
    {
        std::vector<int> ranks = room();
        int count = 0;

        checked(rondo_comm_failed(get(), ranks.data(), &count));
        ranks.resize(static_cast<std::size_t>(count));
        return ranks;
    }
    void revoke() const
    {
        checked(rondo_comm_revoke(get()));
    }
    communicator shrink(const rondo_config *config = nullptr) const
    {
        return derived(rondo_comm_shrink, config);
    }
    /* A member's call, with all ranks that there will be. A newcomer calls join(). */
    communicator grow(const rondo_unique_id &id, int size,
                      const rondo_config *config = nullptr) const
    {
        return derived(rondo_comm_grow, &id, size, -1, config);
    }
    static communicator join(const rondo_unique_id &id, int size, int rank,
                             const rondo_config *config = nullptr)
    {
        return communicator().derived(rondo_comm_grow, &id, size, rank, config);
    }
    void set_timeout(double seconds) const
    {
        checked(rondo_comm_set_timeout(get(), seconds));
    }

    /* ---- Asking ---- */

    int rank() const noexcept
    {
        return rondo_comm_rank(get());
    }
    int size() const noexcept
    {
        return rondo_comm_size(get());
    }
    int local_rank() const noexcept
    {
        return rondo_comm_local_rank(get());
    }
    int local_size() const noexcept
    {
        return rondo_comm_local_size(get());
    }
    /* RONDO_OK, or the error that broke it. Throws nothing. */
    rondo_result query() const noexcept
    {
        return rondo_comm_query(get());
    }

    /* ---- Collectives ---- */

    template <typename T>
    void all_reduce(const T *input, T *output, std::size_t count, rondo_op op = RONDO_SUM,
                    rondo_stream *stream = nullptr) const
    {
        checked(rondo_all_reduce(input, output, count, type_of<T>::value, op, get(), stream));
    }
    template <typename T>
    void all_reduce(T *inout, std::size_t count, rondo_op op = RONDO_SUM,
                    rondo_stream *stream = nullptr) const
    {
        all_reduce<T>(inout, inout, count, op, stream);
    }
    template <typename T>
    void reduce(const T *input, typename given<T *>::type output, std::size_t count, rondo_op op,
                int root, rondo_stream *stream = nullptr) const
    {
        checked(rondo_reduce(input, output, count, type_of<T>::value, op, root, get(), stream));
    }
    template <typename T>
    void broadcast(T *inout, std::size_t count, int root, rondo_stream *stream = nullptr) const
    {
        checked(rondo_broadcast(inout, inout, count, type_of<T>::value, root, get(), stream));
    }
    template <typename T>
    void all_gather(const T *input, T *output, std::size_t count,
                    rondo_stream *stream = nullptr) const
    {
        checked(rondo_all_gather(input, output, count, type_of<T>::value, get(), stream));
    }
    template <typename T>
    void reduce_scatter(const T *input, T *output, std::size_t count, rondo_op op = RONDO_SUM,
                        rondo_stream *stream = nullptr) const
    {
        checked(rondo_reduce_scatter(input, output, count, type_of<T>::value, op, get(), stream));
    }
    template <typename T>
    void all_to_all(const T *input, T *output, std::size_t count,
                    rondo_stream *stream = nullptr) const
    {
        checked(rondo_all_to_all(input, output, count, type_of<T>::value, get(), stream));
    }
    template <typename T>
    void gather(const T *input, typename given<T *>::type output, std::size_t count, int root,
                rondo_stream *stream = nullptr) const
    {
        checked(rondo_gather(input, output, count, type_of<T>::value, root, get(), stream));
    }
    template <typename T>
    void scatter(typename given<const T *>::type input, T *output, std::size_t count, int root,
                 rondo_stream *stream = nullptr) const
    {
        checked(rondo_scatter(input, output, count, type_of<T>::value, root, get(), stream));
    }
    void barrier(rondo_stream *stream = nullptr) const
    {
        checked(rondo_barrier(get(), stream));
    }
    template <typename T>
    void send(const T *input, std::size_t count, int peer, rondo_stream *stream = nullptr) const
    {
        checked(rondo_send(input, count, type_of<T>::value, peer, get(), stream));
    }
    template <typename T>
    void recv(T *output, std::size_t count, int peer, rondo_stream *stream = nullptr) const
    {
        checked(rondo_recv(output, count, type_of<T>::value, peer, get(), stream));
    }

    /* ---- Collectives with a count for each rank; null displacements: one behind the other ---- */

    template <typename T>
    void all_to_all_v(const T *input, const std::size_t *send_counts,
                      const std::size_t *send_displacements, T *output,
                      const std::size_t *recv_counts, const std::size_t *recv_displacements,
                      rondo_stream *stream = nullptr) const
    {
        checked(rondo_all_to_all_v(input, send_counts, send_displacements, output, recv_counts,
                                   recv_displacements, type_of<T>::value, get(), stream));
    }
    template <typename T>
    void all_gather_v(const T *input, T *output, const std::size_t *counts,
                      const std::size_t *displacements = nullptr,
                      rondo_stream *stream = nullptr) const
    {
        checked(rondo_all_gather_v(input, output, counts, displacements, type_of<T>::value, get(),
                                   stream));
    }
    template <typename T>
    void reduce_scatter_v(const T *input, const std::size_t *counts,
                          const std::size_t *displacements, T *output, rondo_op op = RONDO_SUM,
                          rondo_stream *stream = nullptr) const
    {
        checked(rondo_reduce_scatter_v(input, counts, displacements, output, type_of<T>::value, op,
                                       get(), stream));
    }

  private:
    void checked(rondo_result result) const
    {
        rondo::check(result, get());
    }
    std::vector<int> room() const
    {
        return std::vector<int>(static_cast<std::size_t>(size() > 0 ? size() : 1));
    }
    template <typename FUNCTION, typename... ARGUMENTS>
    communicator derived(FUNCTION function, ARGUMENTS... arguments) const
    {
        rondo_comm *handle = nullptr;

        checked(function(get(), arguments..., &handle));
        return communicator(handle);
    }
};

/*
 * Runs `body`, whose calls, also of many ranks, are collected and then run together. An exception
 * of `body` ends the group first, which runs the calls that were collected before it.
 */
template <typename BODY> void group(BODY &&body)
{
    rondo::check(rondo_group_start());
    try {
        body();
    } catch (...) {
        (void)rondo_group_end();
        throw;
    }
    rondo::check(rondo_group_end());
}

/* An owner of what a function of its communicator ends: a registration or an operation. */
template <typename HANDLE, rondo_result (*END)(rondo_comm *, HANDLE)> class part
{
  public:
    part() = default;
    part(const communicator &comm, HANDLE handle) noexcept : comm_(comm.get()), handle_(handle)
    {
    }
    part(part &&other) noexcept : comm_(other.comm_), handle_(other.handle_)
    {
        other.comm_ = nullptr;
    }
    part &operator=(part &&other) noexcept
    {
        part taken(std::move(other)); /* which then ends what was here */

        std::swap(comm_, taken.comm_);
        std::swap(handle_, taken.handle_);
        return *this;
    }
    ~part()
    {
        close();
    }
    /* The end, before the destructor. */
    void close() noexcept
    {
        if (comm_)
            (void)END(comm_, handle_);
        comm_ = nullptr;
    }
    HANDLE get() const noexcept
    {
        return handle_;
    }
    explicit operator bool() const noexcept
    {
        return comm_ != nullptr;
    }

  private:
    rondo_comm *comm_ = nullptr;
    HANDLE handle_ = HANDLE();
};

/* Memory of the caller's that peers map until this ends: rondo_comm_register(). */
class registration : public part<rondo_registration *, rondo_comm_deregister>
{
  public:
    registration() = default;
    registration(const communicator &comm, void *memory, std::size_t bytes)
        : part(comm, made_of(comm, memory, bytes))
    {
    }

  private:
    static rondo_registration *made_of(const communicator &comm, void *memory, std::size_t bytes)
    {
        rondo_registration *handle = nullptr;

        rondo::check(rondo_comm_register(comm.get(), memory, bytes, &handle), comm.get());
        return handle;
    }
};

/* An operation of one's own; get() is what a collective takes. */
class operation : public part<rondo_op, rondo_op_destroy>
{
  public:
    operation() = default;
    /* The function as in rondo.h. It is called by C, so it must not throw. */
    operation(const communicator &comm, rondo_op_function function, void *context, bool commutative)
        : part(comm, made_of(comm, function, context, commutative))
    {
    }
    /* Every rank's input is multiplied by its own scalar before a sum. */
    template <typename T> static operation premul_sum(const communicator &comm, T scalar)
    {
        rondo_op op = 0;

        rondo::check(rondo_op_create_premul_sum(comm.get(), &scalar, type_of<T>::value, &op),
                     comm.get());
        return operation(comm, op);
    }

  private:
    operation(const communicator &comm, rondo_op op) noexcept : part(comm, op)
    {
    }
    static rondo_op made_of(const communicator &comm, rondo_op_function function, void *context,
                            bool commutative)
    {
        rondo_op op = 0;

        rondo::check(rondo_op_create_user(comm.get(), function, context, commutative, &op),
                     comm.get());
        return op;
    }
};

} // namespace rondo

#endif
