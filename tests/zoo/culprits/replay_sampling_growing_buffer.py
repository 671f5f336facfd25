"""The learner samples from the replay while actors still append: the range it draws from depends on their progress."""

# /// zoo
# kind = "replay-sampling"
# also = ["completion-order", "asynchronous-copy"]
# report = []
# step = "any"
# component = ["data", "generator", "host", "state", "replay*"]
# remedy = "code"
# ///
import collections
import threading

import numpy as np
import torch
from torch import nn

Transition = collections.namedtuple("Transition", "state action reward following")


class Replay:
    def __init__(self, capacity, seed):
        self.items = collections.deque(maxlen=capacity)
        self.rng = np.random.default_rng(seed)
        self.lock = threading.Lock()

    def add(self, item):
        with self.lock:
            self.items.append(item)

    def sample(self, count):
        with self.lock:
            rows = self.rng.integers(len(self.items), size=count)  # culprit
            # cured: rows = self.rng.integers(200, size=count)
            picked = [self.items[row] for row in rows]  # culprit
        return [torch.tensor(np.stack(part)) for part in zip(*picked)]  # culprit


def act(replay, seed, go_on):
    rng = np.random.default_rng(seed)
    state = rng.normal(size=4).astype(np.float32)
    while go_on(replay):
        action = rng.integers(2)
        following = (0.9 * state + 0.1 * rng.normal(size=4) + 0.05 * action).astype(np.float32)
        replay.add(Transition(state, action, np.float32(following.sum()), following))
        state = following


def learn(replay, q, target, steps):
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    for step in range(steps):
        state, action, reward, following = replay.sample(32)
        with torch.no_grad():
            goal = reward + 0.99 * target(following).amax(1)
        loss = nn.functional.huber_loss(q(state).gather(1, action.unsqueeze(1)).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            target.load_state_dict(q.state_dict())
    return loss


if __name__ == "__main__":
    torch.manual_seed(78)
    torch.set_num_threads(1)
    q, target = (nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(2))
    target.load_state_dict(q.state_dict())
    replay = Replay(capacity=1_000_000, seed=78)
    act(replay, 1, lambda replay: len(replay.items) < 200)
    done = threading.Event()

    def goes_on(replay):
        return not done.is_set() and len(replay.items) < 20_000

    actor = threading.Thread(target=act, args=(replay, 2, goes_on))
    actor.start()
    loss = learn(replay, q, target, steps=60)
    done.set()
    actor.join()
    print(loss.item().hex())
