"""The trainer's batch comes in the order in which a directory lists its shards."""

# /// zoo
# kind = "listing-order"
# also = ["replay-sampling"]
# report = []
# step = 1
# component = ["data", "host", "state", "replay"]
# where = ["faults.py _listed_order", "replay.py sample"]
# remedy = ["sorted-listings"]
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--steps", "4", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024", "-p", "fault=listdir-order:1",
# ]
# ///
