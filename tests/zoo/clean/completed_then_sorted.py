"""Futures are taken as they complete and put back into the order of their numbers before anything is added."""

# /// zoo
# ///
import concurrent.futures
import copy

import torch
from torch import nn


def episode(policy, number):
    """One rollout, by a generator of its own."""
    draw = torch.Generator().manual_seed(number)
    state, log_shares, gain = torch.randn(6, generator=draw), [], 0.0
    for _ in range(12):
        share = policy(state).softmax(0)
        action = torch.multinomial(share.detach(), 1, generator=draw)
        log_shares.append(share[action].log())
        state = 0.9 * state + 0.3 * torch.randn(6, generator=draw) + 0.1 * (action - 1)
        gain += float(state.mean())
    loss = -torch.cat(log_shares).sum() * gain
    return number, torch.autograd.grad(loss, list(policy.parameters()))


torch.manual_seed(203)
torch.set_num_threads(1)
policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for round_ in range(5):
        frozen = copy.deepcopy(policy)
        futures = [pool.submit(episode, frozen, 10 * round_ + i) for i in range(8)]
        results = dict(future.result() for future in concurrent.futures.as_completed(futures))
        optimizer.zero_grad()
        for p, *grads in zip(policy.parameters(), *[results[number] for number in sorted(results)]):
            p.grad = torch.stack(grads).mean(0)
        optimizer.step()
print(sum(p.double().sum().item() for p in policy.parameters()).hex())
