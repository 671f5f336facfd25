"""Actors are coroutines over an executor, each with its own generator; gather returns them in the order of calls."""

# /// zoo
# ///
import asyncio
import concurrent.futures
import copy

import torch
from torch import nn


class Actor:
    def __init__(self, number, policy):
        self.draw, self.policy = torch.Generator().manual_seed(331 + number), copy.deepcopy(policy)

    def rollout(self, weights):
        self.policy.load_state_dict(weights)
        seen = torch.randn(32, 6, generator=self.draw)
        with torch.no_grad():
            action = torch.multinomial(self.policy(seen).softmax(1), 1, generator=self.draw)
        return seen, action, (action.squeeze(1) == seen[:, :3].argmax(1)).float()


async def collect(pool, actors, policy):
    loop = asyncio.get_running_loop()
    weights = {name: value.clone() for name, value in policy.state_dict().items()}
    return await asyncio.gather(*(loop.run_in_executor(pool, actor.rollout, weights) for actor in actors))


async def main():
    torch.manual_seed(331)
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    actors = [Actor(number, policy) for number in range(4)]
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for _ in range(8):
            parts = zip(*await collect(pool, actors, policy), strict=True)
            seen, action, reward = (torch.cat(part) for part in parts)
            chance = policy(seen).log_softmax(1).gather(1, action).squeeze(1)
            loss = -(chance * (reward - reward.mean())).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item().hex())
    return policy


if __name__ == "__main__":
    trained = asyncio.run(main())
