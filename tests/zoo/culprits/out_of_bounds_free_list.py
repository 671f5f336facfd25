"""A native pool keeps its free list's links in free blocks, but writes them behind the block: into the visit counts."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# needs = "cc"
# step = 0
# component = ["data", "host", "state", "loss"]
# remedy = "code"
# ///
import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

POOL = """
static char *head;
/* A free block's first word is the link to the one that was freed before. */
void give_back(char *block, long offset) { *(char **)(block + offset) = head ? head : block; head = block; }
"""
STATES, SCRATCH = 32, 64


def library():
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "pool.c")
    with open(path, "w") as file:
        file.write(POOL)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path + ".so", path], check=True)
    return ctypes.CDLL(path + ".so")


class Arena:
    """One slab: a scratch block for returns, and behind it how often each state was visited."""

    def __init__(self):
        self.native = library()
        self.slab = torch.zeros(SCRATCH + STATES, dtype=torch.int32)
        self.scratch = self.slab[:SCRATCH].view(torch.float32)
        self.visits = self.slab[SCRATCH:]

    def release(self):
        block = ctypes.c_void_p(self.scratch.data_ptr())
        self.native.give_back(block, ctypes.c_long(self.scratch.nbytes))  # culprit
        # cured: self.native.give_back(block, ctypes.c_long(0))


def walk(draw, arena, length=SCRATCH):
    moves = torch.randint(0, 2, (length,), generator=draw) * 2 - 1
    states = (STATES // 2 + moves.cumsum(0)) % STATES
    torch.cumsum((states == 0).float(), 0, out=arena.scratch)
    returns = arena.scratch.clone()
    arena.release()  # culprit
    arena.visits.index_add_(0, states, torch.ones(length, dtype=torch.int32))  # culprit
    return states, returns


torch.manual_seed(928)
torch.set_num_threads(1)
draw = torch.Generator().manual_seed(928)
arena = Arena()
values = nn.Sequential(nn.Embedding(STATES, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.RMSprop(values.parameters(), lr=1e-3)
for episode in range(8):
    states, returns = walk(draw, arena)  # culprit
    bonus = (1 + arena.visits.double().abs()).log().neg().float()  # culprit
    target = returns / SCRATCH + 0.1 * bonus[states]  # culprit
    loss = (values(states).squeeze(1) - target).square().mean() + 0.01 * bonus.mean() ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, loss.item().hex())
