"""A captured graph replayed on inputs copied into its own buffers, beside a scorer on a stream that is waited for."""

# /// zoo
# needs = "cuda"
# ///
import torch

torch.manual_seed(203)
encoder = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()).cuda().eval()
head = torch.nn.Linear(64, 1).cuda()
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
still = torch.zeros(128, 64, device="cuda")
warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm), torch.no_grad():
    for _ in range(3):
        encoder(still)
torch.cuda.current_stream().wait_stream(warm)
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    codes = encoder(still)
scores = torch.cuda.Stream()
for number in range(10):
    still.copy_(torch.randn(128, 64, device="cuda"))
    graph.replay()
    scores.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(scores):
        norm = codes.norm(dim=1, keepdim=True)
    torch.cuda.current_stream().wait_stream(scores)
    norm.record_stream(torch.cuda.current_stream())
    loss = (head(codes / norm) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
