# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's habits, in Rondo's words. rondo run -n 3 python examples/python/mpi_habits.py"""
import numpy
import rondo

comm = rondo.init()                                     # comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size                       # comm.Get_rank(), comm.Get_size()
a, b = numpy.arange(4.0) + rank, numpy.empty(4)

comm.all_reduce(a, b)                                   # comm.Allreduce(a, b)
comm.all_reduce(b)                                      # comm.Allreduce(MPI.IN_PLACE, b)
comm.broadcast(a, root=0)                               # comm.Bcast(a, root=0)
every = comm.all_gather(a)                              # comm.Allgather(a, every)
comm.reduce(a, b, op="max", root=0)                     # comm.Reduce(a, b, op=MPI.MAX, root=0)

left, right = (rank - 1) % size, (rank + 1) % size
with rondo.group():                                     # comm.Sendrecv(a, right, recvbuf=b, source=left)
    comm.send(a, right)
    comm.recv(b, left)

part = comm.split(rank % 2, key=rank)                   # part = comm.Split(rank % 2, key=rank)
with rondo.Stream() as stream:
    request = comm.all_reduce(b, stream=stream)         # request = comm.Iallreduce(MPI.IN_PLACE, b)
    request.wait()                                      # request.Wait()
part.close()                                            # part.Free()
comm.close()
print(f"rank {rank}: {every.shape[0]} rows")
