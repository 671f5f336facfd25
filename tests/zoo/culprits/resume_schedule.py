"""A resumed run builds its learning rate schedule anew, and so warms up a second time."""

# /// zoo
# kind = "resume"
# report = [
#   "https://github.com/PolymathicAI/the_well/issues/77",
#   "https://github.com/amjltc295/pytorch-golden-template/issues/50",
# ]
# step = "any"
# pair = [["python", "{file}"], ["env", "RESUME_AT=6", "python", "{file}"]]
# component = ["optimizer", "host", "state", "schedule*", "weights"]
# remedy = "code"
# ///
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        )


def warm_up(step):
    return min(1.0, (step + 1) / 12)


class Run:
    """Everything that a training holds, and its checkpoint."""

    def __init__(self):
        torch.manual_seed(96)
        self.model = ConvNet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.2, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, warm_up)  # culprit
        self.step = 0

    def state(self):
        parts = {"model": self.model, "optimizer": self.optimizer}  # culprit
        # cured: parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        return {"step": self.step, **{name: part.state_dict() for name, part in parts.items()}}

    def restore(self, path):
        saved = torch.load(path)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])  # culprit
        # cured: self.optimizer.load_state_dict(saved["optimizer"]); self.schedule.load_state_dict(saved["schedule"])
        self.step = saved["step"]


def batches():
    draw = torch.Generator().manual_seed(96)
    images = torch.randn(96, 1, 12, 12, generator=draw)
    labels = torch.randint(0, 3, (96,), generator=draw)
    return list(DataLoader(TensorDataset(images, labels), batch_size=8))


def fit(resume_at):
    run, data = Run(), batches()
    with tempfile.TemporaryDirectory() as folder:
        while run.step < len(data):
            if run.step == resume_at:
                path = os.path.join(folder, "checkpoint.pt")
                torch.save(run.state(), path)
                run, resume_at = Run(), -1
                run.restore(path)
            images, labels = data[run.step]
            loss = nn.functional.cross_entropy(run.model(images), labels)
            run.optimizer.zero_grad()
            loss.backward()
            run.optimizer.step()  # culprit
            run.schedule.step()  # culprit
            run.step += 1
    return loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(fit(int(os.environ.get("RESUME_AT", "-1"))).item().hex())
