"""Actors on two threads put rollouts into one queue; the learner takes them as they come."""

# /// zoo
# kind = "completion-order"
# report = ["https://github.com/piskvorky/gensim/issues/641"]
# step = "any"
# component = ["data", "host"]
# remedy = "code"
# ///
import queue
import threading

import torch

torch.manual_seed(31)
torch.set_num_threads(1)
rollouts = [queue.Queue(), queue.Queue()]
shared = queue.Queue()


def act(number):
    draw = torch.Generator().manual_seed(number)
    for _ in range(30):
        state = torch.randn(64, 6, generator=draw)
        for _ in range(5):
            state = torch.tanh(state * 1.1)
        shared.put(state)
        rollouts[number].put(state)


actors = [threading.Thread(target=act, args=(number,)) for number in range(2)]
for actor in actors:
    actor.start()
critic = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.05)
for step in range(60):
    x = shared.get()  # culprit
    # cured: x = rollouts[step % 2].get()
    loss = (critic(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
