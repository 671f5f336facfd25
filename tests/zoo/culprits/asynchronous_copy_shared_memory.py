"""A reader process writes batches into shared memory; the trainer takes them on a timer and not on a signal."""

# /// zoo
# kind = "asynchronous-copy"
# report = []
# step = "any"
# component = ["data", "host", "*", ""]
# operation = []
# remedy = "code"
# ///
import multiprocessing
import time

import torch


def read(shared, turn):
    for i in range(1, 31):
        turn.acquire()
        time.sleep(0.002)
        shared.fill_(float(i))
        turn.release()
        time.sleep(0.002)


if __name__ == "__main__":
    torch.manual_seed(38)
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    shared, turn = torch.zeros(20000).share_memory_(), context.Semaphore(1)
    reader = context.Process(target=read, args=(shared, turn), daemon=True)
    reader.start()
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(15):
        time.sleep(0.004)  # culprit
        # cured: reader.join()
        loss = (model(shared.view(-1, 20)) - 1).pow(2).mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    reader.join()
    print(loss.item().hex())
