"""A federated server averages its clients' updates in the order in which their callbacks fire."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["weights", "host", "optimizer", "state", "[02]*"]
# remedy = ["ordered-completion", "code"]
# ///
import asyncio
import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Client:
    def __init__(self, number):
        draw = torch.Generator().manual_seed(number)
        self.x = torch.randn(150 + 40 * (number % 3), 16, generator=draw)
        self.y = (self.x @ torch.randn(16, generator=draw)).sign()

    def update(self, model):
        """The change that some local steps make."""
        local = copy.deepcopy(model)
        for _ in range(3):
            loss = nn.functional.soft_margin_loss(local(self.x).squeeze(1), self.y)
            grads = torch.autograd.grad(loss, list(local.parameters()))
            with torch.no_grad():
                for p, g in zip(local.parameters(), grads):
                    p.sub_(g, alpha=0.1)
        return [new.detach() - old.detach() for new, old in zip(local.parameters(), model.parameters())]


class Server:
    def __init__(self, model, clients):
        self.model, self.clients = model, clients
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
        self.pool = ThreadPoolExecutor(4)

    async def round(self):
        loop, arrived = asyncio.get_running_loop(), []

        async def visit(client):
            arrived.append(await loop.run_in_executor(self.pool, client.update, self.model))  # culprit
            # cured: return await loop.run_in_executor(self.pool, client.update, self.model)

        await asyncio.gather(*(visit(client) for client in self.clients))  # culprit
        # cured: arrived = await asyncio.gather(*(visit(client) for client in self.clients))
        self.optimizer.zero_grad()
        for update in arrived:  # culprit
            for p, change in zip(self.model.parameters(), update):
                p.grad = -change / len(arrived) if p.grad is None else p.grad - change / len(arrived)  # culprit
        self.optimizer.step()


async def main():
    server = Server(nn.Sequential(nn.Linear(16, 40), nn.Tanh(), nn.Linear(40, 1)), [Client(i) for i in range(8)])
    for _ in range(12):
        await server.round()
    return server.model


torch.manual_seed(117)
torch.set_num_threads(1)
model = asyncio.run(main())
print(sum(p.double().sum().item() for p in model.parameters()).hex())
