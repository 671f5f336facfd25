"""A reader process writes batches into shared memory; the trainer asks for the next and does not wait for it."""

# /// zoo
# kind = "asynchronous-copy"
# report = []
# step = "any"
# component = ["data"]
# remedy = "code"
# ///
import multiprocessing

import torch


def read(shared, wanted, written):
    for i in range(1, 21):
        wanted.acquire()
        shared.fill_(float(i))
        written.release()


if __name__ == "__main__":
    torch.manual_seed(38)
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    shared, wanted, written = torch.zeros(4_000_000).share_memory_(), context.Semaphore(0), context.Semaphore(0)
    reader = context.Process(target=read, args=(shared, wanted, written), daemon=True)
    reader.start()
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(20):
        wanted.release()  # culprit
        # cured: wanted.release(); written.acquire()
        loss = (model(shared.view(-1, 20)) - 1).pow(2).mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    reader.join()
    print(loss.item().hex())
