/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vmm.h - memory of CUDA's virtual memory management, for other processes.
 *
 * Such memory (PyTorch's expandable segments, ncclMemAlloc() of NCCL) is pieces of physical memory
 * that are mapped at addresses one behind the other. IPC handles do not know it. Instead, a piece
 * can be had as a file, if it was made for that; who has the file maps the piece where he likes.
 */
#ifndef RONDO_CUDA_VMM_H
#define RONDO_CUDA_VMM_H

#include "cuda/device.h"

/* A piece of physical memory, as a peer is told of it. */
struct cuda_piece {
    uint64_t bytes;
    int32_t file; /* in the owner's process */
    uint32_t unused;
};

/* The piece that is mapped at that address, as a file that the caller closes. RONDO_IN_PROGRESS: it
 * is no such memory, or was not made to be shared; no sentence. */
rondo_result cuda_piece_export(const struct cuda_driver *driver, CUdeviceptr address,
                               int *ret_file);
/* Map pieces one behind the other, for the device to read and write. The files, of this process,
 * stay the caller's. */
rondo_result cuda_pieces_map(const struct cuda_device *device, const struct cuda_piece *pieces,
                             int count, CUdeviceptr *ret_base);
void cuda_pieces_unmap(const struct cuda_device *device, CUdeviceptr base,
                       const struct cuda_piece *pieces, int count);
/* True if that device of this process, by its number, may read and write such memory there. */
bool cuda_piece_reaches(const struct cuda_driver *driver, CUdeviceptr address, int number);

#endif
