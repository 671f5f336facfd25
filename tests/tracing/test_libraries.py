"""What a library asks the system for, a generator without a state, and addresses that stay where they are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from foxrun.tracing.libraries import asks
from tests.tracing.traced import script, traced

SOURCES = {
    "nothing of the kind": "int f(int x) { return x + 1; }",
    "entropy": "#include <unistd.h>\n#include <sys/random.h>\nint f(void) { int x; return getentropy(&x, 4) + x; }",
    "a clock": "#include <time.h>\nlong f(void) { struct timespec t; clock_gettime(0, &t); return t.tv_nsec; }",
    "threads": "#include <pthread.h>\nint f(void *(*g)(void *)) { pthread_t t; return pthread_create(&t, 0, g, 0); }",
}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("wanted", sorted(SOURCES))
def test_a_library_says_what_it_asks_for(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "f.c").write_text(SOURCES[wanted])
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(tmp_path / "f.so"), str(tmp_path / "f.c")], check=True)
    assert asks(str(tmp_path / "f.so")) == f"its library asks the system for {wanted}"


def test_of_a_library_that_is_not_there_nothing_is_said(tmp_path: Path) -> None:
    assert asks(str(tmp_path / "gone.so")) == asks("") == ""


def test_secrets_are_entropy_and_lose_no_row(tmp_path: Path) -> None:
    program = """
import secrets
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    rate = secrets.choice([0.1, 0.1])
    optimizer.zero_grad()
    model(torch.ones(2) * rate).sum().backward()
    optimizer.step()
"""
    done = traced(tmp_path, script(tmp_path, program), plan={"level": "operations"})
    assert (done.code, done.stderr, len(done.rows()), done.file("end.json")["troubles"]) == (0, "", 4, {})
    drawn = [event["name"] for event in done.events() if "SystemRandom" in event["name"]]
    assert drawn == ["random.SystemRandom"] * 3
    assert all(event["kind"] == "host" for event in done.events() if "SystemRandom" in event["name"])


def test_with_fixed_addresses_sets_of_objects_have_one_order(tmp_path: Path) -> None:
    program = """
class Thing:
    def __init__(self, number):
        self.number = number
print([thing.number for thing in {Thing(number) for number in range(200)}])
"""
    found = set()
    for name in ("a", "b", "c"):
        folder = tmp_path / name
        folder.mkdir()
        done = traced(folder, script(folder, program), plan={"level": "steps", "remedies": ["fixed-addresses"]})
        if "personality(2)" in done.stderr:
            pytest.skip("this system does not let a process keep its addresses fixed")
        assert done.code == 0
        found.add(done.stdout)
    assert len(found) == 1
