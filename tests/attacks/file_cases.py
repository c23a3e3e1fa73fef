"""Attacks on paths, links, special files, patches, search and protected names."""

import os
from collections.abc import Callable

from attacks.case import OUTSIDE, Case
from attacks.ground import CANARY, Answer, Field, Ground

WRITE = {"content": "x"}
PARENTS = {"createParents": True}


def link(name: str, to: str) -> Callable[[Ground], object]:
    """A link inside the scope."""
    return lambda ground: os.symlink(ground.fill(to), ground.root / name)


def files(**contents: str) -> Callable[[Ground], object]:
    """Files inside the scope; `__` in a name is a dot."""
    return lambda ground: [(ground.root / name.replace("__", ".")).write_text(text) for name, text in contents.items()]


def both(*steps: Callable[[Ground], object]) -> Callable[[Ground], object]:
    """Several setups, in order."""
    return lambda ground: [step(ground) for step in steps]


def _read(name: str, target: object, **more: object) -> Case:
    return Case(name, "app", "file.read", target, ok=False, hides=[CANARY], **more)  # type: ignore[arg-type]


def _patch(name: str, text: str, **more: object) -> Case:
    return Case(name, "app", "file.patch", input={"diff": text}, setup=files(f__txt="old\n"), **more)  # type: ignore[arg-type]


def _link_keeps_its_own_size(field: Field, answer: Answer) -> None:
    if answer.ok:
        assert answer.data["type"] == "symlink"
        assert answer.data["size"] == len(str(field.ground.out / "secret.txt"))


def _is_refused_or_named(field: Field, answer: Answer) -> None:
    assert answer.code == "permission_denied" or "hardlink" in str(answer.envelope.get("warnings")), answer.text


def _is_still_a_file(field: Field, answer: Answer) -> None:
    place = field.ground.root / "f.txt"
    assert place.is_file()
    assert not place.is_symlink()
    assert place.read_text() == "old\n"


def _touched_is_what_is_listed(field: Field, answer: Answer) -> None:
    here = {path.name for path in field.ground.root.iterdir()} - {"f.txt", "sub"}
    listed = {entry["path"] for entry in answer.data["files"]} if answer.ok else set()
    assert here == listed


def _text_is(name: str, text: str) -> Callable[[Field, Answer], None]:
    def check(field: Field, answer: Answer) -> None:
        assert (field.ground.root / name).read_text() == text

    return check


def _planted_names(ground: Ground) -> None:
    (ground.root / "a.txt").write_text("old")
    for name in ("a.txt.tmp", ".a.txt.tmp", "a.txt~"):
        os.symlink(ground.out / "secret.txt", ground.root / name)


def _device(ground: Ground) -> None:
    if os.geteuid() == 0:
        os.mknod(ground.root / "zero", 0o020666, os.makedev(1, 5))


def _hidden_secret(ground: Ground) -> None:
    (ground.ro / ".env").write_text(f"TOKEN={CANARY}\n")
    ground.script(ground.ro)


def _denied_secret(ground: Ground) -> None:
    for name in ("secret", "pub"):
        (ground.root / name).mkdir()
    (ground.root / "secret" / "k").write_text(CANARY)
    os.symlink("../secret/k", ground.root / "pub" / "ln")


def _deep(ground: Ground) -> None:
    start = os.open(ground.root, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=start)
        below = os.open("d", os.O_RDONLY, dir_fd=start)
        os.close(start)
        start = below
    os.close(start)


def _shadow(ground: Ground) -> None:
    place = ground.script(ground.ro).rename(ground.ro / "rg")
    assert os.access(place, os.X_OK)


PATHS = [
    _read("PATH-001", "../out/secret.txt", codes=["path_out_of_scope"]),
    _read("PATH-007", "a/b/../../../out/secret.txt", codes=["path_out_of_scope"],
          setup=lambda ground: (ground.root / "a" / "b").mkdir(parents=True)),
    _read("PATH-009", "%2e%2e/out/secret.txt"),
    _read("PATH-012", "a.txt\0.png", codes=["invalid_request"], setup=files(a__txt="x")),
    _read("PATH-014", "~/.ssh/id_rsa"),
    Case("PATH-017", "app", "file.delete", "", options={"recursive": True}, ok=False,
         codes=["invalid_request", "permission_denied"], setup=files(keep__txt="k"), present=["$ROOT/keep.txt"]),
    _read("PATH-024", "\uff0e\uff0e\uff0fout\uff0fsecret.txt"),
    _read("PATH-025", "..\u2215out\u2215secret.txt"),
    _read("PATH-028", {"path": "../out/secret.txt"}, codes=["invalid_request"]),
    Case("PATH-045", "$OUT", "file.read", "secret.txt", ok=False, codes=["unknown_scope"], hides=[CANARY]),
    Case("PATH-047", "__proto__", "file.read", "a.txt", ok=False, codes=["unknown_scope"]),
    Case("PATH-055", "app", "file.write", ".GIT/hooks/pre-commit", WRITE, PARENTS, ok=False,
         codes=["permission_denied"], absent=["$ROOT/.GIT/hooks/pre-commit"]),
]  # fmt: skip

LINKS = [
    _read("SYM-003", "d/secret.txt", codes=OUTSIDE, setup=link("d", "$OUT")),
    Case("SYM-005", "app", "file.read", "in", hides=["$OUT"],
         setup=both(files(f__txt="inside"), link("in", "f.txt"))),
    Case("SYM-013", "app", "file.create", "ln", WRITE, ok=False, absent=["$OUT/new.txt"],
         setup=link("ln", "$OUT/new.txt")),
    Case("SYM-022", "app", "file.search", "ln", {"query": "CANARY"}, hides=[CANARY],
         setup=link("ln", "$OUT/secret.txt")),
    Case("SYM-023", "app", "file.stat", "ln", setup=link("ln", "$OUT/secret.txt"), after=_link_keeps_its_own_size),
    _read("SYM-024", "notes.txt", codes=["permission_denied", "path_out_of_scope"],
          setup=both(files(__env=f"TOKEN={CANARY}"), link("notes.txt", ".env"))),
    Case("SYM-027", "app", "file.write", "a.txt", {"content": "pwn"}, ok=True, unchanged=["$OUT"],
         setup=_planted_names, after=_text_is("a.txt", "pwn")),
    Case("SYM-030", "app", "git.worktree_create", ".", {"path": "d/wt", "branch": "w"}, ok=False, absent=["$OUT/wt"],
         setup=both(Ground.repository, link("d", "$OUT"))),
    Case("SYM-031", "desk", "desktop.observe", "primary", unchanged=["$OUT"]),
    Case("SYM-032", "app", "code.context", ".", hides=[CANARY], setup=link("AGENTS.md", "$OUT/secret.txt")),
    Case("HARD-001", "app", "file.read", "hl", after=_is_refused_or_named,
         setup=lambda ground: os.link(ground.out / "secret.txt", ground.root / "hl")),
    Case("HARD-003", "app", "file.patch", input={"diff": f"--- a/hl\n+++ b/hl\n@@ -1 +1 @@\n-{CANARY}\n+pwn\n"},
         setup=lambda ground: os.link(ground.out / "secret.txt", ground.root / "hl"), unchanged=["$OUT"]),
    Case("CFG-026", "app", "file.read", "pub/ln", ok=False, hides=[CANARY], setup=_denied_secret),
]  # fmt: skip


def _second_names(ground: Ground) -> None:
    (ground.root / "d").mkdir()
    (ground.root / ".env").write_text(f"TOKEN={CANARY}\n")
    os.link(ground.root / ".env", ground.root / "d" / "plain.txt")
    (ground.root / "d" / "id_rsa").write_text(CANARY)
    os.link(ground.root / "d" / "id_rsa", ground.root / "d" / "other.txt")


def _copy_has_no_secret(field: Field, answer: Answer) -> None:
    assert not [path for path in (field.ground.root / "e").rglob("*") if CANARY in path.read_text()]


def _warns_of_a_hardlink(field: Field, answer: Answer) -> None:
    assert "hardlink" in str(answer.envelope["warnings"])


def _second_name_in_a_folder(ground: Ground) -> None:
    (ground.root / "d").mkdir()
    os.link(ground.out / "secret.txt", ground.root / "d" / "hl")


SECOND_NAMES = [
    Case("HARD-read", "app", "file.read", "d/plain.txt", ok=False, hides=[CANARY], setup=_second_names),
    Case("HARD-search", "app", "file.search", ".", {"query": "CANARY"}, ok=True, hides=[CANARY], setup=_second_names),
    Case("HARD-search-one", "app", "file.search", "d/other.txt", {"query": "CANARY"}, hides=[CANARY], setup=_second_names),
    Case("HARD-copy", "app", "file.copy", "d", {"destination": "e"}, ok=True, setup=_second_names, after=_copy_has_no_secret),
    Case("HARD-copy-one", "app", "file.copy", "hl", {"destination": "copy"}, ok=True, after=_warns_of_a_hardlink,
         setup=lambda ground: os.link(ground.out / "secret.txt", ground.root / "hl")),
    Case("HARD-copy-all", "app", "file.copy", "d", {"destination": "e"}, ok=True, after=_warns_of_a_hardlink,
         setup=_second_name_in_a_folder),
]  # fmt: skip

SPECIAL = [
    Case(
        "SPEC-002", "app", "file.write", "ff", WRITE, setup=lambda ground: os.mkfifo(ground.root / "ff"), max_ms=30_000
    ),
    Case("SPEC-005", "app", "file.read", "zero", ok=False, setup=_device, max_ms=30_000),
    Case("RES-021", "app", "file.tree", ".", options={"maxDepth": 1_000_000}, max_ms=30_000, setup=_deep),
    Case("RES-033", "app", "file.read", "a.txt", options={"maxBytes": 2**63}, setup=files(a__txt="x")),
]

_PHANTOM = (
    "From 0 Mon Sep 17 00:00:00 2001\nSubject: x\n\n diff --git a/p b/p\n--- /dev/null\n+++ b/phantom.txt\n@@ -0,0 +1 @@\n"
    "+x\n---\ndiff --git a/real.txt b/real.txt\nnew file mode 100644\n--- /dev/null\n+++ b/real.txt\n@@ -0,0 +1 @@\n+pwn\n"
)
_THROUGH_A_LINK = (
    "diff --git a/ln b/ln\nnew file mode 120000\n--- /dev/null\n+++ b/ln\n@@ -0,0 +1 @@\n+../out\n"
    "\\ No newline at end of file\ndiff --git a/ln/p.txt b/ln/p.txt\nnew file mode 100644\n--- /dev/null\n+++ b/ln/p.txt\n"
    "@@ -0,0 +1 @@\n+pwn\n"
)
_GONE = "diff --git a/f.txt b/f.txt\ndeleted file mode 100644\n--- a/f.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
_HUNKS = "--- a/f.txt\n+++ b/f.txt\n" + "".join(f"@@ -{n} +{n} @@\n-old\n+new\n" for n in range(1, 100_001))

PATCHES = [
    _patch("PATCH-007", _THROUGH_A_LINK, ok=False, absent=["$OUT/p.txt", "$ROOT/ln"]),
    _patch("PATCH-009", "diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 120000\n", ok=False, after=_is_still_a_file),
    _patch("PATCH-020", "1d\n.\n!touch $MARK\nw\n", ok=False, absent=["$MARK"]),
    _patch("PATCH-021", _PHANTOM, after=_touched_is_what_is_listed),
    _patch("PATCH-025", _HUNKS, max_ms=30_000),
    _patch("PATCH-026", _GONE),
    _patch("PATCH-028", '--- /dev/null\n+++ "b/a\\nb"\n@@ -0,0 +1 @@\n+x\n'),
    Case("PATCH-032", "app", "file.patch", "f.txt", {"edits": [{"oldText": "old\n", "newText": "$& \\1 \\g<0>"}]}, ok=True,
         setup=files(f__txt="old\n"), after=_text_is("f.txt", "$& \\1 \\g<0>")),
    Case("PATCH-033", "app", "file.write", "f.txt", WRITE, {"ifSha256": "0" * 64}, ok=False, codes=["conflict"],
         setup=files(f__txt="old\n"), after=_is_still_a_file),
]  # fmt: skip

SEARCHES = [
    Case("SRCH-007", "ro", "file.search", ".", {"query": "--files"}, setup=_hidden_secret, absent=["$MARK"]),
    Case("SRCH-013", "ro", "file.search", ".", {"query": "TOKEN"}, {"glob": "!!**"}, setup=_hidden_secret, hides=[CANARY]),
    Case("SRCH-014", "ro", "file.search", "--pre=./x.sh", {"query": "x"}, setup=_hidden_secret, absent=["$MARK"]),
    Case("SRCH-016", "ro", "file.search", ".", {"query": "hi"}, setup=_shadow, absent=["$MARK"]),
    Case("SRCH-021", "ro", "file.search", ".", {"query": "a\nb"}, setup=_hidden_secret),
    Case("SRCH-023", "ro", "file.search", ".", {"query": "a"}, max_ms=30_000, max_growth_mb=64,
         setup=lambda ground: (ground.ro / "one.txt").write_bytes(b"a" * 100_000_000)),
    Case("SRCH-024", "ro", "file.search", ".", {"query": "a"}, {"maxResults": 10**9}, max_ms=30_000, max_growth_mb=64,
         setup=lambda ground: (ground.ro / "many.txt").write_bytes(b"a\n" * 20_000_000)),
    Case("SRCH-028", "ro", "file.search", ".", {"query": "CANARY"}, hides=["\x1b", "\x07"],
         setup=lambda ground: (ground.ro / "e.txt").write_text("\x1b]0;CANARY\x07\n")),
]  # fmt: skip

_CLOSED = [("CFG-013", ".config/autostart/x.desktop"), ("CFG-018", ".claude/settings.json"),
           ("CFG-019", ".codex/config.toml"), ("CFG-020", ".npmrc")]  # fmt: skip
SETTINGS = [
    *(Case(name, "home", "file.write", path, WRITE, PARENTS, ok=False, codes=["permission_denied"], unchanged=["$HOME"])
      for name, path in _CLOSED),
    Case("CFG-023", "app", "file.write", "sub/ro/x.txt", WRITE, ok=False, absent=["$ROOT/sub/ro/x.txt"]),
]  # fmt: skip

FILE_CASES = [*PATHS, *LINKS, *SECOND_NAMES, *SPECIAL, *PATCHES, *SEARCHES, *SETTINGS]
