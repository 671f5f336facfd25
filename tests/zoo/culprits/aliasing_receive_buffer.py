"""Messages are received into one bytearray, and tensors made by frombuffer go on sharing it."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import queue
import socket
import threading

import torch
from torch import nn

ROWS, WIDTH, MESSAGES = 6000, 20, 40


class Receiver(threading.Thread):
    """Reads messages of a fixed size off a socket and puts them into a queue as tensors."""

    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection, self.ready = connection, queue.Queue(maxsize=2)
        self.buffer = bytearray(4 * ROWS * WIDTH)

    def run(self):
        view = memoryview(self.buffer)
        for _ in range(MESSAGES):
            have = 0
            while have < len(view):
                have += self.connection.recv_into(view[have:])  # culprit
            batch = torch.frombuffer(self.buffer, dtype=torch.float32).view(ROWS, WIDTH)  # culprit
            self.ready.put(batch)  # culprit
            # cured: self.ready.put(batch.clone())


class Sender(threading.Thread):
    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection = connection

    def run(self):
        draw = torch.Generator().manual_seed(116)
        for _ in range(MESSAGES):
            self.connection.sendall(torch.randn(ROWS, WIDTH, generator=draw).numpy().tobytes())


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.arm = nn.Sequential(nn.Linear(WIDTH, 32), nn.PReLU(), nn.Linear(32, 8))

    def forward(self, a, b):
        return nn.functional.cosine_similarity(self.arm(a), self.arm(b))


torch.manual_seed(116)
torch.set_num_threads(1)
here, there = socket.socketpair()
receiver = Receiver(here)
receiver.start()
Sender(there).start()
siamese = Siamese()
optimizer = torch.optim.Adadelta(siamese.parameters(), lr=0.5)
for _ in range(MESSAGES):
    x = receiver.ready.get()  # culprit
    a, b = x[::2], x[1::2]  # culprit
    near = (a * b).sum(1).tanh()  # culprit
    loss = (siamese(a, b) - near).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
