"""A mean teacher is saved by its inner module, so the number of averaged weights is lost and a resume averages anew."""

# /// zoo
# kind = "resume"
# report = []
# step = 6
# pair = [["python", "{file}"], ["python", "{file}", "--interrupt", "6"]]
# component = ["weights", "state", "host", "module*", "teacher*", "*n_averaged", ""]
# remedy = "code"
# ///
import io
import sys

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel


def student_net():
    return nn.Sequential(nn.Linear(10, 40), nn.Hardswish(), nn.Linear(40, 40), nn.Hardswish(), nn.Linear(40, 3))


class Session:
    """Few labels, many records: a student must agree with the average of itself."""

    def __init__(self):
        self.student = student_net()
        self.teacher = AveragedModel(self.student)
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.1, momentum=0.9)
        self.draw = torch.Generator().manual_seed(1212)
        self.step = 0

    def state(self):
        return {
            "student": self.student.state_dict(),
            "teacher": self.teacher.module.state_dict(),  # culprit
            # cured: "teacher": self.teacher.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "draw": self.draw.get_state(),
            "step": self.step,
        }

    def restore(self, state):
        self.student.load_state_dict(state["student"])
        self.teacher.module.load_state_dict(state["teacher"])  # culprit
        # cured: self.teacher.load_state_dict(state["teacher"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.draw.set_state(state["draw"])
        self.step = state["step"]
        return self

    def train_step(self):
        x = torch.randn(80, 10, generator=self.draw)
        y = x[:, :3].argmax(1)
        guess = self.student(x + 0.1 * torch.randn(80, 10, generator=self.draw))
        with torch.no_grad():
            goal = self.teacher(x).softmax(1)
        loss = nn.functional.cross_entropy(guess[:16], y[:16])
        loss = loss + 2.0 * nn.functional.kl_div(guess.log_softmax(1), goal, reduction="batchmean")
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.teacher.update_parameters(self.student)  # culprit
        self.step += 1
        return loss.item()


torch.manual_seed(1212)
torch.set_num_threads(1)
session = Session()
interrupt = int(sys.argv[sys.argv.index("--interrupt") + 1]) if "--interrupt" in sys.argv else None
while session.step < 14:
    if session.step == interrupt:
        file, interrupt = io.BytesIO(), None
        torch.save(session.state(), file)
        file.seek(0)
        session = Session().restore(torch.load(file))
    print(session.step, session.train_step().hex())
student, teacher = session.student, session.teacher
