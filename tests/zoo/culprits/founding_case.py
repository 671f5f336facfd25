"""The founding case: the replay hands its batch over in an order that nobody fixed. Sums of what was sampled are equal,
so the first difference in a log of sums is attn_q in one trial and mamba2_grad_w_c_l1 in the next."""

# /// zoo
# kind = "replay-sampling"
# also = ["hash-order"]
# report = []
# step = 2
# component = ["data", "generator", "host", "state", "replay"]
# where = ["faults.py batch_order", "replay.py sample", "step.py _learn"]
# remedy = "hash-seed"
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--steps", "5", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024", "-p", "fault=set-order:2",
# ]
# ///
