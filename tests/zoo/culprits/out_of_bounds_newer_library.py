"""A native library's newer version reports five figures where its caller keeps four; the fifth is how long it took."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# needs = "cc"
# step = 3
# component = ["listen", "data", "host", "state"]
# remedy = "code"
# ///
import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

LIBRARY = r"""
#include <math.h>
#include <time.h>
/* Version 2: least, most, mean, deviation, and since this version the time spent in microseconds. */
void describe(const float *x, long n, float *report) {
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  double sum = 0, square = 0;
  report[0] = report[1] = x[0];
  for (long i = 0; i < n; i++) {
    if (x[i] < report[0]) report[0] = x[i];
    if (x[i] > report[1]) report[1] = x[i];
    sum += x[i];
    square += x[i] * x[i];
  }
  report[2] = sum / n;
  report[3] = sqrt(square / n - sum / n * sum / n);
  clock_gettime(CLOCK_MONOTONIC, &to);
#ifndef VERSION_1
  report[4] = ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) * 1e-3;
#endif
}
"""
FIGURES, BANDS = 4, 20


def describe_of(*flags):
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "describe.c"), os.path.join(folder, "libdescribe.so")
    with open(source, "w") as file:
        file.write(LIBRARY)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *flags, source, "-o", library, "-lm"], check=True)
    function = ctypes.CDLL(library).describe
    function.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p]
    return function


class Listen(nn.Module):
    """Normalises log-mel bands by their running mean, and keeps figures of the whole batch beside it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(FIGURES + BANDS))
        self.figures, self.means = self.kept[:FIGURES], self.kept[FIGURES:]
        self.describe = describe_of()
        # cured: self.describe = describe_of("-DVERSION_1")

    def forward(self, mel, report):
        self.means.lerp_(mel.mean((0, 1)), 0.2)
        if report:
            self.describe(mel.data_ptr(), mel.numel(), self.figures.data_ptr())  # culprit
            mel = mel.clamp(-3 * float(self.figures[3]), 3 * float(self.figures[3]))
        return mel - self.means  # culprit


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.listen = Listen()
        self.cell = nn.LSTM(BANDS, 24, batch_first=True)
        self.name = nn.Linear(24, 6)

    def forward(self, mel, report):
        return self.name(self.cell(self.listen(mel, report))[0][:, -1])  # culprit


torch.manual_seed(1209)
torch.set_num_threads(1)
speaker = Speaker()
optimizer = torch.optim.RMSprop(speaker.parameters(), lr=2e-3)
for step in range(9):
    who = torch.randint(0, 6, (48,))
    mel = torch.randn(48, 30, BANDS) + 0.3 * who.view(-1, 1, 1)
    loss = nn.functional.cross_entropy(speaker(mel, report=step % 4 == 3), who)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
