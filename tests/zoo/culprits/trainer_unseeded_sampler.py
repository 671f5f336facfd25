"""The trainer's replay samples by a generator that nobody seeded."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = []
# step = 1
# component = ["generator", "data", "state", "replay"]
# where = ["faults.py sample_uniform"]
# remedy = ["seed-generators", "fixed-entropy"]
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--steps", "4", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024", "-p", "fault=unseeded-sampler:1",
# ]
# ///
