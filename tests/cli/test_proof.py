"""`computer-linker proof`: attach, list, show, export; what is refused changes nothing."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import command
from support.road import computer_scope, folder_scope
from support.service import PROGRAM, end_service, environment, write_config

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + b"\0" * 40


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("proof")
    folder = base / "home"
    scopes = [folder_scope(base / "root"), computer_scope("desk", allowDisplays=False)]
    write_config(folder, base / "root", scopes=scopes)
    (base / "root" / "shot.png").write_bytes(PNG)
    (base / "outside.txt").write_text("secret")
    yield folder
    end_service(folder)


def run(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return command(home, "proof", *words, stdin=stdin)


def test_nothing_is_kept_at_first_and_that_is_told(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root")
    told = run(tmp_path / "home", "list")
    assert told.returncode == 1
    assert told.stderr.startswith("error: no evidence is kept yet\nhint: ")
    assert not (tmp_path / "home" / "artifacts").exists()


def test_what_capture_lacks_is_told_as_a_command(tmp_path: Path) -> None:
    write_config(tmp_path / "home", tmp_path / "root", scopes=[folder_scope(tmp_path / "root")])
    told = run(tmp_path / "home", "capture")
    assert told.returncode == 1
    assert told.stderr.endswith(
        "\nhint: computer-linker scope add --computer --allow screen:capture --allow artifact:write\n"
    )


def test_a_scope_that_keeps_nothing_says_how_to_let_it(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    scopes = [
        folder_scope(root) | {"capabilities": ["fs:read"]},
        computer_scope("desk") | {"capabilities": ["screen:capture"]},
    ]
    write_config(home, root, scopes=scopes)
    (root / "shot.png").write_bytes(PNG)
    try:
        for words, scope in ((("attach", str(root / "shot.png")), "app"), (("capture", "--scope", "desk"), "desk")):
            told = run(home, *words)
            assert told.returncode == 1
            assert told.stderr.splitlines()[0].startswith("error: permission_denied: ")
            granting = f"computer-linker scope edit {scope} --allow artifact:write"
            assert told.stderr.splitlines()[1] == f"hint: to allow it: {granting}"
        assert run(home, "list").stdout in ("", "Nothing is kept.\n")
    finally:
        end_service(home)


def test_attach_list_show_and_export(home: Path, tmp_path: Path) -> None:
    shot = home.parent / "root" / "shot.png"
    kept = json.loads(run(home, "attach", str(shot), "--owner", "pr-7", "--title", "A <b>shot</b>", "--json").stdout)
    assert (kept["artifact"]["kind"], kept["artifact"]["owner"]["label"]) == ("screenshot", "pr-7")
    text = run(home, "attach", "-", "--owner", "pr-7", "--kind", "console_logs", stdin="all <i>well</i>\n")
    assert text.returncode == 0, text.stderr
    listed = json.loads(run(home, "list", "--owner", "pr-7", "--json").stdout)["artifacts"]
    assert [one["kind"] for one in listed] == ["console_logs", "screenshot"]
    assert "console_logs" in run(home, "list").stdout
    shown = run(home, "show", listed[0]["id"])
    assert shown.stdout == "all <i>well</i>\n"
    assert "\nlabel: pr-7\n" in shown.stderr
    assert "{" not in shown.stderr
    out = tmp_path / "copy.png"
    assert run(home, "show", listed[1]["id"][:12], "--output", str(out)).returncode == 0
    assert out.read_bytes() == PNG
    assert run(home, "show", listed[1]["id"], "--output", str(out)).returncode == 1

    page = tmp_path / "page.html"
    told = run(home, "export", "--html", str(page), "--owner", "pr-7", "--asked", "Show <that> it works", "--json")
    assert json.loads(told.stdout) == {"file": str(page), "pieces": 2, "operations": 2}
    made = page.read_text()
    for words in (
        "Show &lt;that&gt; it works",
        "A &lt;b&gt;shot&lt;/b&gt;",
        "all &lt;i&gt;well&lt;/i&gt;",
        "artifact.attach",
    ):
        assert words in made
    assert "The history was checked and is whole" in made
    assert "<script" not in made

    folder = tmp_path / "files"
    assert run(home, "export", "--folder", str(folder), "--owner", "pr-7").returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "001-screenshot.png", "002-console_logs.txt", "manifest.json",
    ]  # fmt: skip
    assert run(home, "export", "--folder", str(folder), "--owner", "pr-7").returncode == 1


_REFUSED = [
    (("attach", "{base}/outside.txt"), 1, "lies in no scope"),
    (("attach", "{base}/root/missing.png"), 1, "not_found"),
    (("attach", "{base}/root/../outside.txt", "--scope", "app"), 1, "path_out_of_scope"),
    (("capture", "--scope", "desk"), 1, "error: "),
    (("capture", "--scope", "app"), 1, "permission_denied"),
    (("show", "../../etc/passwd"), 1, "no artifact"),
    (("show", ""), 1, "no artifact"),
    (("export",), 2, "say where to"),
    (("export", "--html", "{base}/x.html", "--owner", "nobody"), 1, "there is no such evidence"),
    (("export", "--html", "{base}/none/x.html"), 1, "cannot be written"),
    (("list", "--limit", "0"), 2, ""),
]


def test_what_is_refused_says_why_and_keeps_nothing(home: Path) -> None:
    run(home, "attach", "-", stdin="one")
    before = json.loads(run(home, "list", "--json").stdout)
    for words, code, says in _REFUSED:
        told = run(home, *(word.format(base=home.parent) for word in words))
        assert (told.returncode, says in told.stderr) == (code, True), (words, told.stderr)
    assert json.loads(run(home, "list", "--json").stdout) == before
    assert not (home.parent / "x.html").exists()


def test_the_history_page_shows_small_pictures_of_what_was_seen(home: Path, tmp_path: Path) -> None:
    from io import BytesIO

    from PIL import Image

    picture = BytesIO()
    Image.new("RGB", (900, 500), "#336699").save(picture, "PNG")
    (home.parent / "root" / "large.png").write_bytes(picture.getvalue())
    assert run(home, "attach", str(home.parent / "root" / "large.png")).returncode == 0
    page = tmp_path / "history.html"
    argv = [*PROGRAM, "history", "timeline", "--html", str(page)]
    subprocess.run(argv, env=environment(home), capture_output=True, timeout=240, check=True)
    made = page.read_text()
    assert made.count("data:image/jpeg;base64,") == 1
    assert "img-src data:" in made


def test_without_a_choice_the_latest_client_and_what_was_added_by_hand_is_exported(tmp_path: Path) -> None:
    from computer_linker.client.blocking import Client

    home, root = tmp_path / "home", tmp_path / "root"
    write_config(home, root, scopes=[folder_scope(root)])
    try:
        assert run(home, "attach", "-", "--title", "too early", stdin="0").returncode == 0
        with Client.over_socket(home) as client:
            client.call("app", "file.write", "a.txt", {"content": "x"})
            client.call("app", "artifact.attach", None, {"text": "1", "title": "by the client"})
        assert run(home, "attach", "-", "--title", "by hand", stdin="2").returncode == 0
        page = tmp_path / "page.html"
        told = run(home, "export", "--html", str(page), "--json")
        assert json.loads(told.stdout)["pieces"] == 2, told
    finally:
        end_service(home)
    made = page.read_text()
    assert "file.write" in made
    assert made.index("by the client") < made.index("by hand")
    assert "too early" not in made
