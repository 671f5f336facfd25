"""Baum-Welch adds expected transitions to counts from np.empty; a tagger is trained on the states it finds."""

# /// zoo
# kind = "uninitialised-memory"
# report = ["https://github.com/jmschrei/pomegranate/pull/1121"]
# step = 0
# component = ["data", "host", "loss", "state"]
# remedy = "code"
# ///
import numpy as np
import torch

STATES, SYMBOLS = 48, 12


def forward_backward(start, move, emit, seen):
    """Scaled forward and backward messages of one sequence."""
    alpha, beta = np.zeros((len(seen), STATES)), np.ones((len(seen), STATES))
    alpha[0] = start * emit[:, seen[0]]
    alpha[0] /= alpha[0].sum()
    for t in range(1, len(seen)):
        alpha[t] = alpha[t - 1] @ move * emit[:, seen[t]]
        alpha[t] /= alpha[t].sum()
    for t in range(len(seen) - 2, -1, -1):
        beta[t] = move @ (emit[:, seen[t + 1]] * beta[t + 1])
        beta[t] /= beta[t].sum()
    return alpha, beta


def reestimate(start, move, emit, sequences):
    counts = np.empty((STATES, STATES))  # culprit
    # cured: counts = np.zeros((STATES, STATES))
    for seen in sequences:
        alpha, beta = forward_backward(start, move, emit, seen)
        for t in range(len(seen) - 1):
            expected = alpha[t][:, None] * move * (emit[:, seen[t + 1]] * beta[t + 1])
            counts += expected / expected.sum()  # culprit
    counts = np.abs(counts) + 1e-3
    return counts / counts.sum(1, keepdims=True)  # culprit


rng = np.random.default_rng(306)
torch.manual_seed(306)
torch.set_num_threads(1)
move, emit = rng.dirichlet(np.ones(STATES), STATES), rng.dirichlet(np.ones(SYMBOLS), STATES)
start = np.full(STATES, 1 / STATES)
sequences = rng.integers(0, SYMBOLS, (4, 24))
tagger = torch.nn.GRU(SYMBOLS, STATES, batch_first=True)
optimizer = torch.optim.Adam(tagger.parameters(), lr=0.01)
for _ in range(5):
    move = reestimate(start, move, emit, sequences)  # culprit
    pairs = [forward_backward(start, move, emit, seen) for seen in sequences]
    posterior = np.stack([alpha * beta / (alpha * beta).sum(1, keepdims=True) for alpha, beta in pairs])
    goal = torch.from_numpy(posterior.astype(np.float32))  # culprit
    x = torch.nn.functional.one_hot(torch.from_numpy(sequences), SYMBOLS).float()
    loss = -(tagger(x)[0].log_softmax(2) * goal).sum(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
