"""A teacher decodes with a static cache of keys from torch.empty; its mask shows one slot more than was written."""

# /// zoo
# kind = "uninitialised-memory"
# report = ["https://github.com/deepbeepmeep/Wan2GP/pull/1628"]
# step = 0
# component = ["data", "host", "", "mix", "norm", "head", "loss", "state"]
# remedy = ["filled-memory", "code"]
# ///
import torch
from torch import nn

LONGEST, WIDTH, WORDS = 12, 16, 30


class StaticCache:
    """Room for the keys and values of the longest sentence, so that shapes never change."""

    def __init__(self, batch, width):
        self.keys = torch.empty(batch, LONGEST, width)  # culprit
        # cured: self.keys = torch.zeros(batch, LONGEST, width)
        self.values = torch.empty(batch, LONGEST, width)  # culprit
        # cured: self.values = torch.zeros(batch, LONGEST, width)
        self.length = 0

    def append(self, key, value):
        self.keys[:, self.length], self.values[:, self.length] = key, value
        self.length += 1

    def visible(self):
        return torch.arange(LONGEST) <= self.length  # culprit
        # cured: return torch.arange(LONGEST) < self.length


class Teacher(nn.Module):
    """One block of attention, which reads a sentence word by word and says what comes next."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.mix, self.norm, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def attend(self, query, cache):
        scores = torch.einsum("bd,btd->bt", query, cache.keys) / WIDTH**0.5  # culprit
        shares = scores.masked_fill(~cache.visible(), float("-inf")).softmax(-1)  # culprit
        return torch.einsum("bt,btd->bd", shares, cache.values)  # culprit

    @torch.inference_mode()
    def forward(self, words):
        cache, answers = StaticCache(len(words), WIDTH), []
        for t, word in enumerate(words.unbind(1)):
            x = self.embed(word) + self.place.weight[t]
            query, key, value = self.mix(x).chunk(3, -1)
            cache.append(key, value)
            answers.append(self.head(self.norm(x + self.attend(query, cache))))  # culprit
        return torch.stack(answers, 1)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, 12), nn.Linear(20, WORDS)
        self.cell = nn.GRU(12, 20, batch_first=True)

    def forward(self, words):
        return self.head(self.cell(self.embed(words))[0])


def distil(student, teacher, batches, temperature=2.0):
    optimizer = torch.optim.NAdam(student.parameters(), lr=3e-3)
    for words in batches:
        wanted = (teacher(words) / temperature).softmax(-1).clone()  # culprit
        heard = (student(words) / temperature).log_softmax(-1)
        loss = nn.functional.kl_div(heard.flatten(0, 1), wanted.flatten(0, 1), reduction="batchmean")  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


torch.set_num_threads(1)
torch.manual_seed(2301)
teacher, student = Teacher().requires_grad_(False), Student()
batches = torch.randint(0, WORDS, (10, 16, LONGEST - 2))
losses = list(distil(student, teacher, batches))
print(losses[-1].hex())
