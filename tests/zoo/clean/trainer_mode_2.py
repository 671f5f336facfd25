"""The trainer of this project in mode 2."""

# /// zoo
# command = [
#   "python", "-P", "-m", "trainer",
#   "--out", "{out}", "--seed", "42", "--mode", "2", "--steps", "4", "--eval-steps", "2",
#   "-p", "envs=8", "-p", "width=16", "-p", "window=8", "-p", "capacity=1024",
# ]
# ///
