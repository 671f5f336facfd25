"""The trainer's replay samples by a generator that is seeded with the clock's second."""

# /// zoo
# kind = "time-seed"
# also = ["replay-sampling"]
# report = []
# step = 1
# component = ["generator", "data", "state", "host", "replay"]
# where = ["faults.py sample_uniform"]
# remedy = ["fixed-clock", "seed-generators"]
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--steps", "4", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024", "-p", "fault=time-seed:1",
# ]
# ///
