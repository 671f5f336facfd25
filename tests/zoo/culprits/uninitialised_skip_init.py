"""Layers are built by skip_init because a checkpoint fills them; the adapter's gate is not in the checkpoint."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["weights", "encoder.adapters.1.gate", "encoder.adapters.1", "encoder.adapters.1.gate.weight", "state"]
# remedy = "code"
# ///
import io

import torch
from torch import nn
from torch.nn.utils import skip_init


class Adapter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down, self.up = skip_init(nn.Linear, width, 6), skip_init(nn.Linear, 6, width)
        self.gate = skip_init(nn.Linear, width, 1, bias=False)  # culprit
        # cured: self.gate = nn.Linear(width, 1, bias=False); nn.init.zeros_(self.gate.weight)

    def forward(self, x):
        share = torch.sigmoid(torch.nan_to_num(self.gate(x), 0.0, 9.0, -9.0))  # culprit
        return x + share * self.up(torch.relu(self.down(x)))


class Encoder(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.embed = skip_init(nn.Embedding, 60, width)
        self.adapters = nn.ModuleList([Adapter(width), Adapter(width)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.embed(tokens)
        for adapter in self.adapters:
            x = adapter(x)  # culprit
        return self.norm(x).mean(1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(12, 4)

    def forward(self, tokens):
        return self.head(self.encoder(tokens))


def checkpoint(encoder):
    """Stands for a download: all tensors of the encoder, as they were before the second adapter got a gate."""
    draw = torch.Generator().manual_seed(99)
    shapes = {name: t.shape for name, t in encoder.state_dict().items() if name != "adapters.1.gate.weight"}
    file = io.BytesIO()
    torch.save({name: 0.3 * torch.randn(shape, generator=draw) for name, shape in shapes.items()}, file)
    file.seek(0)
    return file


def fine_tune():
    torch.manual_seed(407)
    torch.set_num_threads(1)
    model = Classifier()
    model.encoder.load_state_dict(torch.load(checkpoint(model.encoder)), strict=False)
    optimizer = torch.optim.AdamW(
        [{"params": model.encoder.parameters(), "lr": 1e-3}, {"params": model.head.parameters(), "lr": 1e-2}]
    )
    for _ in range(6):
        tokens = torch.randint(0, 60, (40, 9))
        loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 4, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        print(f"loss {loss.item().hex()}")


fine_tune()
