"""What the twins' environments differ in, and what the injected sitecustomize does and leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.hostile import CLOCK_OFFSET_S, HOSTILITIES, SITE, twin_environment
from orchestrator.narrowing import ORDER

BASE = {
    "A": "1",
    "PYTHONPATH": "/somewhere",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=9:x=1",
    "OMP_NUM_THREADS": "3",
}


def environments(*names: str) -> tuple[dict[str, str], dict[str, str]]:
    one, two = (twin_environment(twin, BASE, scratch=Path("/s"), hostilities=names) for twin in ("twin1", "twin2"))
    return one, two


@pytest.mark.parametrize(
    ("name", "differ"),
    [
        ("hash-seed", {"PYTHONHASHSEED"}),
        ("clock", {"FOXRUN_CLOCK_OFFSET_S"}),
        ("directories", {"XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"}),
        ("listing-order", {"FOXRUN_LISTING_ORDER"}),
        ("environment-order", set()),
        ("allocator", {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_ARENA_MAX"}),
        ("memory", {"MALLOC_PERTURB_", "FOXRUN_POISON"}),
    ],
)
def test_each_hostility_alone_differs_in_its_own_variables(name: str, differ: set[str]) -> None:
    one, two = environments(name)
    found = {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)}
    assert found == differ | {"FOXRUN_LEG"}
    assert (list(one) == list(reversed(two))) == (name == "environment-order")


def test_what_decides_bits_rightly_is_the_same_in_both() -> None:
    one, two = environments(*HOSTILITIES)
    assert one["OMP_NUM_THREADS"] == two["OMP_NUM_THREADS"] == "3"
    assert one["PYTHONPATH"] == two["PYTHONPATH"] == f"{SITE}:/somewhere"
    assert one["GLIBC_TUNABLES"] == two["GLIBC_TUNABLES"] == "x=1:glibc.malloc.tcache_count=0"
    # The two fills are complements, so no byte of fresh memory is equal in both.
    assert int(one["MALLOC_PERTURB_"]) ^ int(two["MALLOC_PERTURB_"]) == 0xFF


def test_every_hostility_is_tried_when_they_part() -> None:
    assert set(ORDER) == set(HOSTILITIES)


def python(code: str, folder: Path, **variables: str) -> str:
    environ = {**os.environ, "PYTHONPATH": f"{SITE}:{folder}", "FOLDER": str(folder), **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_listings_are_ordered_whatever_function_lists(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in ("b", "a", "c"):
        (folder / name).touch()
    code = (
        "import glob, os, pathlib, shutil\nd = os.environ['FOLDER'] + '/d'\n"
        "names = lambda paths: [os.path.basename(p) for p in paths]\n"
        "with os.scandir(d) as entries: scanned = [e.name for e in entries]\n"
        "fd = os.open(d, os.O_RDONLY)\n"
        "all = [os.listdir(d), scanned, names(glob.glob(d + '/*')), names(map(str, pathlib.Path(d).iterdir())),\n"
        "       names(map(str, pathlib.Path(d).glob('*'))), next(os.walk(d))[2], os.listdir(fd)]\n"
        "assert os.listdir(os.fsencode(d)) == [os.fsencode(n) for n in all[0]]\n"
        "shutil.copytree(d, d + '2'); shutil.rmtree(d + '2'); assert shutil.rmtree.avoids_symlink_attacks\n"
        "assert all == [all[0]] * len(all), all\nprint(''.join(all[0]))"
    )
    assert python(code, tmp_path, FOXRUN_LISTING_ORDER="ascending") == "abc"
    assert python(code, tmp_path, FOXRUN_LISTING_ORDER="descending") == "cba"


def test_an_image_keeps_its_own_sitecustomize(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'ran'\n")
    assert python("import os; print(os.environ['OWN'])", tmp_path, FOXRUN_LISTING_ORDER="descending") == "ran"


def test_the_second_clock_is_ahead(tmp_path: Path) -> None:
    code = (
        "import time; ahead = time.time() - time.clock_gettime(time.CLOCK_REALTIME); "
        "ahead_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_REALTIME); "
        "print(round(ahead), round(ahead_ns / 1e9))"
    )
    assert python(code, tmp_path, FOXRUN_CLOCK_OFFSET_S=str(CLOCK_OFFSET_S)) == f"{CLOCK_OFFSET_S} {CLOCK_OFFSET_S}"
    assert python(code, tmp_path) == "0 0"
