"""Actor and critic share a trunk; the union of their parameters is a set, and the gradient's norm follows its order."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = "any"
# component = ["optimizer", "weights", "host", "loss", "state", "trunk*", "actor*", "critic*", "*.weight", "*.bias"]
# remedy = "code"
# ///
import torch
from torch import nn


def head(trunk, width, out):
    return nn.Sequential(trunk, nn.Linear(width, width), nn.Tanh(), nn.Linear(width, out))


class ActorCritic(nn.Module):
    def __init__(self, seen=10, width=48, actions=5):
        super().__init__()
        trunk = nn.Sequential(nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = head(trunk, width, actions), head(trunk, width, 1)

    def own(self):
        """Both heads' parameters, the trunk's once."""
        return list(set(self.actor.parameters()) | set(self.critic.parameters()))  # culprit
        # cured: return list(dict.fromkeys([*self.actor.parameters(), *self.critic.parameters()]))

    def loss(self, seen, action, gain):
        value = self.critic(seen).squeeze(1)
        chosen = torch.distributions.Categorical(logits=self.actor(seen)).log_prob(action)
        return -(chosen * (gain - value.detach())).mean() + (gain - value).square().mean()


def rollout(agent, draw, steps=24):
    seen = torch.randn(steps, 10, generator=draw)
    with torch.no_grad():
        share = agent.actor(seen).softmax(1)
    action = torch.multinomial(share, 1, generator=draw).squeeze(1)
    return seen, action, (seen[:, :5].argmax(1) == action).float().flip(0).cumsum(0).flip(0) / steps


def main():
    torch.manual_seed(313)
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(313)
    agent = ActorCritic()
    params = agent.own()  # culprit
    optimizer = torch.optim.SGD(params, lr=0.3)
    for _ in range(10):
        loss = agent.loss(*rollout(agent, draw))
        optimizer.zero_grad()
        loss.backward()
        total = torch.zeros(())
        for p in params:  # culprit
            total = total + p.grad.square().sum()  # culprit
        for p in params:
            p.grad.mul_(0.5 / (total.sqrt() + 1e-6))  # culprit
        optimizer.step()
    print(loss.item().hex())
    return agent


if __name__ == "__main__":
    trained = main()
