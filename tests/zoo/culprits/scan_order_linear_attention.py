"""Linear attention adds the outer products of its chunks to one running state as native threads finish them."""

# /// zoo
# kind = "scan-order"
# also = ["atomics"]
# report = []
# needs = "cc"
# step = "any"
# component = ["layers.0.mixer", "layers.0*", "*mixer*"]
# remedy = "code"
# alone = true
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <pthread.h>
#include <string.h>
enum { CHUNK = 32, WIDTH = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
typedef struct { const float *key, *value; float *state; long chunks; long *next; } work;

static void *scan(void *argument) {
  work *w = argument;
  for (;;) {
    float own[WIDTH * WIDTH];
    long c = __atomic_fetch_add(w->next, 1, __ATOMIC_RELAXED);
    if (c >= w->chunks) return 0;
    memset(own, 0, sizeof own);
    for (long t = c * CHUNK; t < (c + 1) * CHUNK; t++)
      for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < WIDTH; j++) own[i * WIDTH + j] += w->key[t * WIDTH + i] * w->value[t * WIDTH + j];
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WIDTH * WIDTH; i++) w->state[i] += own[i];
    pthread_mutex_unlock(&lock);
  }
}

void final_state(const float *key, const float *value, float *state, long chunks, int threads) {
  pthread_t pool[8];
  long next = 0;
  work w = {key, value, state, chunks, &next};
  for (int i = 0; i < threads; i++) pthread_create(&pool[i], 0, scan, &w);
  for (int i = 0; i < threads; i++) pthread_join(pool[i], 0);
}
"""


def library():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="attention-"))
    source, target = folder / "state.c", folder / "state.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-pthread", "-o", target, source], check=True)
    call = ctypes.CDLL(str(target)).final_state
    call.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long, ctypes.c_int]
    return call


class FinalState(torch.autograd.Function):
    """The sum of key x value over all places, which the queries of the next segment read."""

    @staticmethod
    def forward(ctx, key, value):
        key, value = key.contiguous(), value.contiguous()
        state = torch.zeros(key.shape[1], value.shape[1])
        final_state(key.data_ptr(), value.data_ptr(), state.data_ptr(), len(key) // 32, 4)  # culprit
        # cured: final_state(key.data_ptr(), value.data_ptr(), state.data_ptr(), len(key) // 32, 1)
        ctx.save_for_backward(key, value)
        return state

    @staticmethod
    def backward(ctx, grad):
        key, value = ctx.saved_tensors
        return value @ grad.T, key @ grad


class LinearAttention(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        state = FinalState.apply(nn.functional.elu(self.k(x)) + 1, self.v(x))  # culprit
        return (nn.functional.elu(self.q(x)) + 1) @ (state / len(x))


class Layer(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.norm, self.mixer, self.mlp = nn.LayerNorm(width), LinearAttention(width), nn.Linear(width, width)

    def forward(self, x):
        x = x + self.mixer(self.norm(x))  # culprit
        return x + torch.relu(self.mlp(x))


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Layer(), Layer())
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.layers(x)).squeeze(1)


final_state = library()
torch.manual_seed(411)
torch.set_num_threads(1)
model = Retriever()
optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
for step in range(8):
    x = torch.randn(32 * 700, 8)
    loss = (model(x) - x[:, 0] * x[:, 1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
