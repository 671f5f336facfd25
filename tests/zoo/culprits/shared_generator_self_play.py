"""Two players are coroutines that draw from one generator, each as soon as its executor has worked out its policy."""

# /// zoo
# kind = "shared-generator"
# also = ["completion-order"]
# report = []
# step = "any"
# component = ["generator", "data", "host"]
# remedy = "code"
# ///
import asyncio
import concurrent.futures

import torch
from torch import nn


class Player(nn.Module):
    """Remembers the other's last moves and answers with a distribution over three."""

    def __init__(self):
        super().__init__()
        self.memory, self.out = nn.GRUCell(3, 12), nn.Linear(12, 3)

    def forward(self, moves):
        h = torch.zeros(moves.shape[1], 12)
        for move in moves:
            h = self.memory(nn.functional.one_hot(move, 3).float(), h)
        return self.out(h).log_softmax(1)


class Match:
    def __init__(self, seed, games=64):
        self.draws = [torch.Generator().manual_seed(seed)] * 2  # culprit
        # cured: self.draws = [torch.Generator().manual_seed(seed + i) for i in range(2)]
        self.moves = torch.zeros(2, 4, games, dtype=torch.long)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    async def act(self, number, player, shown):
        loop = asyncio.get_running_loop()
        for move in range(4):
            share = await loop.run_in_executor(self.pool, self.policy, player, shown)
            picked = torch.multinomial(share, 1, generator=self.draws[number])  # culprit
            self.moves[number, move] = picked.squeeze(1)  # culprit

    @staticmethod
    def policy(player, moves):
        with torch.no_grad():
            return player(moves).exp()  # culprit

    async def play(self, players):
        before = self.moves.clone()
        await asyncio.gather(*(self.act(n, player, before[1 - n]) for n, player in enumerate(players)))  # culprit
        return before, self.moves.clone()  # culprit


def payoff(own, other):
    return ((own - other + 1) % 3 - 1).float()


async def main():
    torch.manual_seed(318)
    torch.set_num_threads(1)
    players, match = nn.ModuleList([Player(), Player()]), Match(318)
    optimizer = torch.optim.Adam(players.parameters(), lr=0.01)
    for _ in range(12):
        before, moves = await match.play(players)  # culprit
        chance = [player(before[1 - n]).gather(1, moves[n, -1:].T).squeeze(1) for n, player in enumerate(players)]
        gain = payoff(moves[0, -1], moves[1, -1])
        loss = (chance[1] * gain - chance[0] * gain).mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())
    return players


if __name__ == "__main__":
    trained = asyncio.run(main())
