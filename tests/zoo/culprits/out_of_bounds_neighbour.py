"""Environments step in threads, each in its rows of one buffer; the compiled step writes one row more than it has."""

# /// zoo
# kind = "out-of-bounds-write"
# also = ["completion-order"]
# report = []
# needs = "cc"
# step = "any"
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import concurrent.futures
import ctypes
import os
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

ENVS, ROWS, WIDTH = 8, 600, 8
SOURCE = r"""
/* Rolls a pendulum out into `rows` rows of eight numbers. */
void rollout(float *out, long rows, float angle, float gain) {
  float speed = 0;
  for (long t = 0; t <= rows; t++) {
    for (int k = 0; k < 40; k++) { speed -= 0.001f * gain * angle; angle += 0.001f * speed; }
    for (int k = 0; k < 8; k++) out[t * 8 + k] = angle * (k + 1) + speed;
  }
}
"""


def build():
    path = os.path.join(tempfile.mkdtemp(), "pendulum")
    with open(path + ".c", "w") as file:
        file.write(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", path + ".c", "-o", path + ".so"], check=True)
    function = ctypes.CDLL(path + ".so").rollout
    function.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_float, ctypes.c_float]
    return function


class Pendulums:
    def __init__(self, seed):
        self.rollout, self.rng = build(), np.random.default_rng(seed)
        self.buffer = np.zeros((ENVS * ROWS + 1, WIDTH), np.float32)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def one(self, number, angle):
        own = self.buffer[number * ROWS : (number + 1) * ROWS]
        self.rollout(own.ctypes.data, len(own), angle, 1.0 + number)  # culprit
        # cured: self.rollout(own.ctypes.data, len(own) - 1, angle, 1.0 + number)

    def step(self):
        list(self.pool.map(self.one, range(ENVS), self.rng.uniform(-1, 1, ENVS)))  # culprit
        return torch.from_numpy(self.buffer[:-1].reshape(ENVS, ROWS, WIDTH).copy())  # culprit


if __name__ == "__main__":
    torch.manual_seed(307)
    torch.set_num_threads(1)
    envs = Pendulums(307)
    value = nn.Sequential(nn.Linear(WIDTH, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(value.parameters(), lr=0.003)
    for _ in range(24):
        seen = envs.step()[:, :4]  # culprit
        loss = (value(seen).squeeze(2) - seen.mean(2)).square().mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())
