"""The ranking of files: what others refer to comes first, and the order is the same each time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def ranked(root: Path, seed: int = 0) -> dict[str, Any]:
    paths = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    found = subprocess.run(
        [sys.executable, "-m", "computer_linker.providers.symbols.ranking"],
        cwd=root,
        input=b"\0".join(os.fsencode(path) for path in paths),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        timeout=60,
        check=True,
    )
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__dot__", ".").replace("__in__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_files_that_import_and_files_that_name_rank_what_they_use(tmp_path: Path) -> None:
    write(
        tmp_path,
        central__dot__py="class Central:\n    pass\n",
        one__dot__py="from central import Central\n",
        two__dot__py="from central import Central\n# lonely\n",
        lonely__dot__py="def lonely():\n    pass\n",
        helper__dot__go="func HelperOf() {}\n",
        main__dot__go="func MainOf() { HelperOf() }\n",
    )
    files = ranked(tmp_path)["files"]
    assert files[:2] == ["central.py", "helper.go"]
    assert set(files) == {"central.py", "helper.go", "main.go", "one.py", "two.py", "lonely.py"}


def test_the_order_does_not_depend_on_the_process(tmp_path: Path) -> None:
    words = [f"name_{at}" for at in range(60)]
    for at, word in enumerate(words):
        # Of one to six definers, so that uses weigh differently.
        for copy in range(1 + at % 6):
            write(tmp_path, **{f"define_{at}_{copy}__dot__py": f"def {word}(): pass\n"})
    for at in range(120):
        used = ", ".join(words[(at * 7 + step * 11) % 60] for step in range(12))
        write(tmp_path, **{f"use_{at}__dot__py": f"from elsewhere import {used}\ndef made_{at}(): pass\n"})
    orders = [ranked(tmp_path, seed)["files"] for seed in range(1, 5)]
    assert all(order == orders[0] for order in orders)


@pytest.mark.parametrize("seed", [1, 2])
def test_how_often_a_name_is_used_is_counted_in_files_that_refer_to_it(tmp_path: Path, seed: int) -> None:
    write(tmp_path, core__dot__py="def shared_thing(): pass\ndef unused_thing(): pass\n")
    for at in range(3):
        write(tmp_path, **{f"user{at}__dot__py": "from core import shared_thing\nshared_thing()\n"})
    uses = ranked(tmp_path, seed)["uses"]
    assert uses.get("shared_thing") == 4 - 1 and "unused_thing" not in uses
