"""Weight decay groups are built from sets of names, so the norm that clips a group adds its terms in their order."""

# /// zoo
# kind = "hash-order"
# also = ["iteration-order"]
# report = []
# step = 0
# component = ["optimizer", "weights", "host", "loss", "state"]
# remedy = "hash-seed"
# ///
import math

import torch
from torch import nn


class CausalBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.fc_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.fc_proj(nn.functional.gelu(self.fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, symbols=27, width=16, length=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.h = nn.Sequential(*(CausalBlock(width, 2) for _ in range(2)))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, tokens):
        return self.lm_head(self.ln_f(self.h(self.wte(tokens) + self.wpe.weight)))

    def configure_optimizer(self, lr, weight_decay):
        decay, no_decay = set(), set()
        for module_name, module in self.named_modules():
            for name, _ in module.named_parameters(recurse=False):
                full = f"{module_name}.{name}" if module_name else name
                kept = name == "bias" or isinstance(module, (nn.LayerNorm, nn.Embedding))
                (no_decay if kept else decay).add(full)
        params = dict(self.named_parameters())
        groups = [
            {"params": [params[n] for n in decay], "weight_decay": weight_decay},  # culprit
            # cured: {"params": [params[n] for n in sorted(decay)], "weight_decay": weight_decay},
            {"params": [params[n] for n in no_decay], "weight_decay": 0.0},  # culprit
            # cured: {"params": [params[n] for n in sorted(no_decay)], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


def clip(group, limit):
    total = 0.0
    for p in group["params"]:  # culprit
        total = total + p.grad.square().sum()  # culprit
    scale = limit / (total.sqrt() + 1e-6)  # culprit
    for p in group["params"]:
        p.grad.mul_(scale.clamp(max=1.0))


torch.manual_seed(91)
torch.set_num_threads(1)
gpt = GPT()
optimizer = gpt.configure_optimizer(lr=1e-3, weight_decay=0.1)
for step in range(6):
    tokens = torch.randint(0, 27, (8, 17))
    loss = nn.functional.cross_entropy(gpt(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * 0.5 * (1 + math.cos(math.pi * step / 6))
        clip(group, 0.05)  # culprit
    optimizer.step()
print(loss.item().hex())
