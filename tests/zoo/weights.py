"""Run a program and print a digest of every tensor that its main module then holds: weights, tensors, arrays.

python tests/zoo/weights.py FILE
"""

import hashlib
import runpy
import sys


def digest(names: dict[str, object]) -> str:
    """One digest of all modules and tensors among the globals of a program."""
    import torch

    found = hashlib.sha256()
    for name, value in sorted(names.items()):
        if isinstance(value, torch.nn.Module):
            tensors = list(value.state_dict().items())
        elif isinstance(value, torch.Tensor):
            tensors = [(name, value)]
        else:
            continue
        for key, tensor in tensors:
            data = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
            found.update(key.encode() + data.numpy().tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    print(digest(runpy.run_path(sys.argv[0], run_name="__main__")))
