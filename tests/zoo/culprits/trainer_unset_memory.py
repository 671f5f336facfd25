"""The trainer's priorities are scaled by memory that was never written."""

# /// zoo
# kind = "uninitialised-memory"
# also = []
# report = []
# step = 1
# component = ["data", "state", "host", "replay"]
# where = ["faults.py unset_scale"]
# remedy = "code"
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--steps", "4", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024", "-p", "fault=unset-memory:1",
# ]
# ///
