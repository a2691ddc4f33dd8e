# SPDX-License-Identifier: BSD-3-Clause
"""A sum over ranks inside of a function that JAX compiles. rondo run -n 3 python examples/python/jax_sum.py

The memory of JAX's array is read where it is; what the callback returns is copied. Callbacks are ordered only by the
data that they need: sums that do not depend on each other want a communicator each (comm.dup()).
"""
import jax
import numpy
import rondo

comm = rondo.init()


def sum_over_ranks(x: jax.Array) -> jax.Array:
    """The sum of all ranks' x, for use under jit."""
    def call(mine: jax.Array) -> numpy.ndarray:
        return comm.all_reduce(numpy.asarray(mine), numpy.empty(x.shape, x.dtype))
    return jax.pure_callback(call, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@jax.jit
def step(weights: jax.Array, x: jax.Array) -> jax.Array:
    """A step of gradient descent on the data of all ranks."""
    gradient = jax.grad(lambda w: ((x @ w - 1) ** 2).mean())(weights)
    return weights - 0.1 * sum_over_ranks(gradient) / comm.size


weights = jax.numpy.zeros(4)
for _ in range(3):
    weights = step(weights, jax.numpy.eye(4) * (comm.rank + 1))
every = comm.all_gather(numpy.array(weights))
assert (every == every[0]).all() and every[0][0] > 0
print(f"rank {comm.rank}: {len(weights)} weights are the same everywhere")
