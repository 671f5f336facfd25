"""An actor and a critic, each with an optimizer, stepped one after the other."""

# /// zoo
# ///
import torch

torch.manual_seed(10)
torch.set_num_threads(1)
actor, critic = torch.nn.Linear(6, 3), torch.nn.Linear(6, 1)
optimizers = [torch.optim.Adam(actor.parameters(), lr=0.01), torch.optim.SGD(critic.parameters(), lr=0.01)]
for _ in range(6):
    x = torch.randn(32, 6)
    value = critic(x).squeeze(1)
    policy = torch.distributions.Categorical(logits=actor(x))
    action = policy.sample()
    reward = (action == x[:, :3].argmax(1)).float()
    loss = (value - reward).pow(2).mean() - (policy.log_prob(action) * (reward - value.detach())).mean()
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
print(loss.item().hex())
