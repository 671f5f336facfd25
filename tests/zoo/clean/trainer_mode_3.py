"""The trainer of this project in mode 3."""

# /// zoo
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--mode", "3", "--steps", "4", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024",
# ]
# ///
