"""A potential is fitted to forces; native threads visit pairs of atoms and add to both by compare-and-swap."""

# /// zoo
# kind = "atomics"
# also = ["scan-order"]
# report = []
# needs = "cc"
# step = "any"
# component = ["data", "loss", "host", "state", "", "potential*"]
# remedy = "code"
# alone = true
# ///
import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
static void add(float *to, float what) {
  union { float f; unsigned u; } old, new;
  old.u = __atomic_load_n((unsigned *)to, __ATOMIC_RELAXED);
  do new.f = old.f + what;
  while (!__atomic_compare_exchange_n((unsigned *)to, &old.u, new.u, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
/* Newton's third law: what i gets of j, j gets of i. */
void forces(const long *pairs, const float *pulls, const float *ways, float *out, long count, int threads) {
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (long p = 0; p < count; p++)
    for (int d = 0; d < 3; d++) {
      float f = pulls[p] * ways[3 * p + d];
      add(out + 3 * pairs[2 * p] + d, f);
      add(out + 3 * pairs[2 * p + 1] + d, -f);
    }
}
"""


class Native:
    def __init__(self, threads):
        self.folder, self.threads = Path(tempfile.mkdtemp(prefix="forces-")), threads

    def __enter__(self):
        source, library = self.folder / "forces.c", self.folder / "libforces.so"
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-fopenmp", "-fPIC", "-shared", str(source), "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))
        self.library.forces.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long, ctypes.c_int]
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.folder)

    def forces(self, atoms, pairs, pulls, ways):
        out = torch.zeros(atoms, 3)
        addresses = [t.data_ptr() for t in (pairs, pulls, ways, out)]
        self.library.forces(*addresses, len(pairs), self.threads)  # culprit
        return out


class PairForces(torch.autograd.Function):
    """How strongly each pair pulls, to the force on each atom."""

    @staticmethod
    def forward(ctx, pulls, pairs, ways, atoms, native):
        ctx.save_for_backward(pairs, ways)
        return native.forces(atoms, pairs, pulls.detach().contiguous(), ways)  # culprit

    @staticmethod
    def backward(ctx, grad):
        pairs, ways = ctx.saved_tensors
        return ((grad[pairs[:, 0]] - grad[pairs[:, 1]]) * ways).sum(1), None, None, None, None


class Potential(nn.Module):
    """A pull for each distance: bumps along the axis, each with a weight."""

    def __init__(self, bumps=10):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.2, 2, bumps))
        self.weights = nn.Parameter(torch.zeros(bumps))

    def forward(self, distance):
        return torch.exp(-8 * (distance.unsqueeze(1) - self.centres) ** 2) @ self.weights


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1998)
    atoms = 640
    place = 5 * torch.rand(atoms, 3)
    pairs = torch.combinations(torch.arange(atoms))
    apart = place[pairs[:, 0]] - place[pairs[:, 1]]
    near = apart.norm(dim=1) < 2.2
    pairs, apart = pairs[near].contiguous(), apart[near]
    distance = apart.norm(dim=1).clamp(min=0.1)
    ways = (apart / distance.unsqueeze(1)).contiguous()
    potential = Potential()
    optimizer = torch.optim.LBFGS(potential.parameters(), lr=0.5, max_iter=4, history_size=5)
    with Native(threads=2) as native:
        # cured: with Native(threads=1) as native:
        pull = (1 / (0.5 + distance) ** 2 - 0.3).unsqueeze(1) * ways
        wanted = torch.zeros(atoms, 3).index_add(0, pairs[:, 0], pull).index_add(0, pairs[:, 1], -pull)

        def closure():
            optimizer.zero_grad()
            found = PairForces.apply(potential(distance), pairs, ways, atoms, native)  # culprit
            loss = (found - wanted).square().mean()
            loss.backward()
            return loss

        for _ in range(5):
            loss = optimizer.step(closure)
    print(loss.item().hex())
    return potential


potential = main()
