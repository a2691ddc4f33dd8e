# SPDX-License-Identifier: BSD-3-Clause
"""The training of `rondo train` in torch: torchrun --nproc-per-node 2 examples/pytorch/gpt.py [BACKEND [STEPS]]

A small GPT learns to add. The model, the data and all that the optimizer is told are those of `rondo train`; only the
first values and the order of the data are drawn by another generator. Prints the mean loss of all ranks.
"""
import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

DIGITS, WIDTH, HEADS, LAYERS, BATCH = 3, 64, 4, 2, 256
RATE, LAST_RATE, WARM_UP, DECAY, CLIP = 0.008, 0.02, 50, 0.1, 1.0
LENGTH, PLUS, EQUALS, IGNORED = 3 * DIGITS + 2, 0, 11, -100


def digits_of(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """Tokens of the digits from the ones upwards."""
    return torch.stack([numbers // 10 ** place % 10 + 1 for place in range(count)], 1)


def sums(pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens of "123+456=9750" for each pair of numbers, and of each what follows; only the answer counts."""
    a, b = pairs // 10 ** DIGITS, pairs % 10 ** DIGITS
    sign = torch.ones(len(pairs), 1, dtype=torch.long)
    text = torch.cat([digits_of(a, DIGITS).flip(1), PLUS * sign, digits_of(b, DIGITS).flip(1), EQUALS * sign,
                      digits_of(a + b, DIGITS + 1)], 1)
    following = text[:, 1:].clone()
    following[:, :2 * DIGITS + 1] = IGNORED
    return text[:, :-1], following


class Block(nn.Module):
    """x + attention(norm(x)); x + MLP(norm(x))."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.query(self.norm1(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A decoder-only transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(12, WIDTH), nn.Parameter(torch.empty(LENGTH, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 12)
        for name, value in self.named_parameters():
            if value.dim() > 1:  # what is added to the stream is smaller the more there is of it
                adds = "project" in name or "narrow" in name
                nn.init.normal_(value, std=0.5 / math.sqrt(WIDTH) / (math.sqrt(2 * LAYERS) if adds else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(value)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.token(tokens) + self.position)))


def rate_of(step: int, steps: int) -> float:
    """A part of the peak: up to it in a line, then down along a cosine."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / max(1, steps - WARM_UP)))


def train(backend: str, steps: int) -> None:
    dist.init_process_group(backend)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = DistributedDataParallel(Gpt())
    matrices = [value for value in model.parameters() if value.dim() > 1]
    others = [value for value in model.parameters() if value.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}],
                                  RATE, betas=(0.9, 0.99), eps=1e-8)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_of(step, steps))
    pairs = torch.randperm(100 ** DIGITS)[2000:]  # those before are held out
    order = list(DistributedSampler(pairs, seed=1))
    for step in range(steps):
        at = torch.arange(step * BATCH, (step + 1) * BATCH) % len(order)
        tokens, following = sums(pairs[[order[i] for i in at.tolist()]])
        loss = functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.SUM)
        if dist.get_rank() == 0 and (step + 1 == steps or step % 10 == 9 or not step):
            print(f"step {step + 1}: loss {mean.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


train(sys.argv[1] if len(sys.argv) > 1 else "rondo", int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
