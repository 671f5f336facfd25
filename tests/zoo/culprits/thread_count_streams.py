"""Evolution strategies draw one stream of perturbations a thread: with more threads, the population is another one."""

# /// zoo
# kind = "thread-count"
# also = ["hardware", "algorithm-selection"]
# report = ["https://github.com/HadrienG/InSilicoSeq/issues/215", "https://github.com/nmclark2/SCION/issues/6"]
# step = 0
# component = ["generator", "data", "host", "weights", "optimizer", "loss", "*.weight", "*.bias"]
# remedy = ["one-thread", "code"]
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import torch
from torch.func import functional_call, vmap


def perturbations(count, size, seed):
    """``count`` rows of noise, an equal share from the stream of each thread."""
    streams = torch.get_num_threads()  # culprit
    # cured: torch.set_num_threads(1); streams = 2
    share = -(-count // streams)
    draws = [torch.Generator().manual_seed(seed + i) for i in range(streams)]  # culprit
    rows = [torch.randn(share, size, generator=draw) for draw in draws]  # culprit
    return torch.cat(rows)[:count]  # culprit


class Strategy:
    def __init__(self, model, sigma=0.05, population=60):
        self.model, self.sigma, self.population = model, sigma, population
        self.names = [name for name, _ in model.named_parameters()]
        self.sizes = [p.numel() for p in model.parameters()]

    def fitness(self, flat, x, y):
        parts = zip(self.names, flat.split(self.sizes), self.model.parameters(), strict=True)
        weights = {name: part.view_as(p) for name, part, p in parts}
        return -(functional_call(self.model, weights, (x,)).squeeze(1) - y).abs().mean()

    @torch.no_grad()
    def gradient(self, x, y, seed):
        centre = torch.nn.utils.parameters_to_vector(self.model.parameters())
        noise = perturbations(self.population, len(centre), seed)  # culprit
        score = vmap(self.fitness, in_dims=(0, None, None))(centre + self.sigma * noise, x, y)  # culprit
        score = (score - score.mean()) / (score.std() + 1e-8)
        direction = -(score @ noise) / (self.population * self.sigma)  # culprit
        for p, part in zip(self.model.parameters(), direction.split(self.sizes), strict=True):
            p.grad = part.view_as(p)  # culprit
        return score.max()


torch.manual_seed(309)
policy = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
strategy = Strategy(policy)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
x = torch.randn(32, 4)
for step in range(6):
    best = strategy.gradient(x, x.prod(1), seed=1000 * step)  # culprit
    optimizer.step()
print(best.item().hex())
