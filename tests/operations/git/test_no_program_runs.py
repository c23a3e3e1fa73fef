"""A repository chooses no program: each way to plant one is planted, every operation is called, and no trap goes off."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from computer_linker.providers.git.run import Git
from support.repositories import git, repository, trap
from support.road import Road

pytestmark = pytest.mark.anyio


def setting(*pairs: tuple[str, str], attributes: str = "") -> Callable[[Path, Path], None]:
    def plant(root: Path, script: Path) -> None:
        for key, value in pairs:
            git(root, "config", key, value.replace("TRAP", str(script)))
        if attributes:
            (root / ".gitattributes").write_text(attributes)
            (root / ".git" / "info" / "attributes").write_text(attributes)

    return plant


def hooks(root: Path, script: Path) -> None:
    for name in HOOKS:
        (root / ".git" / "hooks" / name).write_bytes(script.read_bytes())
        (root / ".git" / "hooks" / name).chmod(0o755)


def hooks_path(root: Path, script: Path) -> None:
    (root / "hooks").mkdir()
    for name in HOOKS:
        (root / "hooks" / name).write_bytes(script.read_bytes())
        (root / "hooks" / name).chmod(0o755)
    git(root, "config", "core.hooksPath", str(root / "hooks"))


def included(root: Path, script: Path) -> None:
    (root / ".git" / "more").write_text(
        f'[core]\n\tfsmonitor = {script}\n[filter "deep.er name"]\n\tclean = {script}\n'
    )
    (root / ".gitattributes").write_text('*.txt "filter=deep.er name"\n*.txt filter=y\n')
    (root / ".git" / "more2").write_text(f'[filter "y"]\n\tclean = {script}\n\trequired = true\n')
    git(root, "config", "include.path", "more")
    git(root, "config", "--add", "include.path", str(root / ".git" / "more2"))


def embedded_bare(root: Path, script: Path) -> None:
    git(root / "sub", "init", "-q", "--bare", ".")
    git(root / "sub", "config", "core.fsmonitor", str(script))
    git(root / "sub", "config", "core.bare", "false")
    git(root / "sub", "config", "core.worktree", str(root))


def submodule(root: Path, script: Path) -> None:
    inner = repository(root / "inner")
    git(inner, "config", "core.fsmonitor", str(script))
    git(inner, "config", "diff.external", str(script))
    git(inner, "config", "filter.z.clean", str(script))
    (inner / ".gitattributes").write_text("* filter=z diff=z\n")
    (root / ".gitmodules").write_text(
        f'[submodule "s"]\n\tpath = inner\n\turl = ext::sh -c {script}\n\tupdate = !{script}\n'
    )
    git(root, "config", "submodule.s.update", f"!{script}")
    git(root, "config", "submodule.s.active", "true")
    git(root, "config", "submodule.s.url", f"ext::{script}")
    git(root, "config", "submodule.recurse", "true")
    git(root, "config", "diff.submodule", "diff")
    git(root, "config", "status.submoduleSummary", "true")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{git(inner, 'rev-parse', 'HEAD')},inner")


def promisor(root: Path, script: Path) -> None:
    git(root, "config", "extensions.partialClone", "origin")
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", "remote.origin.url", f"ext::{script}")
    git(root, "config", "remote.origin.promisor", "true")
    git(root, "config", "remote.origin.uploadpack", str(script))
    git(root, "config", "protocol.ext.allow", "always")
    blob = git(root, "rev-parse", "HEAD:sub/x.txt")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


HOOKS = (
    "pre-commit prepare-commit-msg commit-msg post-commit post-index-change post-checkout reference-transaction "
    "pre-auto-gc fsmonitor-watchman post-rewrite pre-merge-commit"
).split()

TRAPS: dict[str, Callable[[Path, Path], None]] = {
    "fsmonitor": setting(("core.fsmonitor", "TRAP")),
    "external diff": setting(("diff.external", "TRAP")),
    "diff driver": setting(("diff.y.command", "TRAP"), attributes="*.txt diff=y\n"),
    "textconv": setting(("diff.y.textconv", "TRAP"), attributes="*.txt diff=y\n"),
    "clean filter": setting(("filter.y.clean", "TRAP"), attributes="*.txt filter=y\n"),
    "smudge filter": setting(("filter.y.smudge", "TRAP"), attributes="*.txt filter=y\n"),
    "process filter": setting(("filter.y.process", "TRAP"), ("filter.y.required", "true"), attributes="* filter=y\n"),
    "oddly named filter": setting(("filter.a=b.C d.clean", "TRAP"), attributes="*.txt filter=a=b.C\n"),
    "merge driver": setting(("merge.y.driver", "TRAP"), attributes="*.txt merge=y\n"),
    "hooks": hooks,
    "hooks path": hooks_path,
    "aliases": setting(*[(f"alias.{name}", "!TRAP") for name in "status diff log add commit config worktree".split()]),
    "pager": setting(("core.pager", "TRAP"), ("pager.status", "TRAP"), ("pager.log", "TRAP"), ("pager.diff", "TRAP")),
    "editor": setting(("core.editor", "TRAP"), ("sequence.editor", "TRAP"), ("commit.verbose", "true")),
    "signing": setting(
        ("commit.gpgSign", "true"), ("gpg.program", "TRAP"), ("log.showSignature", "true"), ("gpg.ssh.program", "TRAP")
    ),
    "ssh signing": setting(("gpg.format", "ssh"), ("commit.gpgSign", "true"), ("gpg.ssh.defaultKeyCommand", "TRAP")),
    "ssh command": setting(("core.sshCommand", "TRAP"), ("core.gitProxy", "TRAP")),
    "credential helper": setting(("credential.helper", "!TRAP")),
    "diff colouring": setting(("interactive.diffFilter", "TRAP")),
    "pack hook": setting(("uploadpack.packObjectsHook", "TRAP")),
    "alternate refs": setting(("core.alternateRefsCommand", "TRAP")),
    "trailer": setting(("trailer.sign.command", "TRAP"), ("trailer.sign.cmd", "TRAP")),
    "auto gc": setting(("gc.auto", "1"), ("maintenance.auto", "true"), ("gc.autoDetach", "false")),
    "browser and tools": setting(
        ("diff.tool", "y"), ("difftool.y.cmd", "TRAP"), ("diff.guitool", "y"), ("man.y.cmd", "TRAP")
    ),
    "included settings": included,
    "embedded bare repository": embedded_bare,
    "submodule": submodule,
    "missing objects": promisor,
    "work tree settings": setting(("extensions.worktreeConfig", "true"), ("core.worktree", "/")),
}


ALL = set(
    "git.status git.changes git.diff git.log git.show git.stage git.unstage git.commit git.worktree_create "
    "git.worktree_list".split()
)


async def call_everything(road: Road) -> list[str]:
    """Every git operation in every form that could run something; the names of those that worked."""
    calls: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("git.status", ".", {}, {"includeDiff": True}),
        ("git.changes", "sub", {}, {}),
        ("git.diff", ".", {}, {}),
        ("git.diff", ".", {}, {"base": "HEAD"}),
        ("git.diff", "sub", {"paths": ["sub/x.txt"]}, {}),
        ("git.log", ".", {}, {}),
        ("git.log", ".", {"paths": ["a.txt"]}, {"ref": "main"}),
        ("git.show", ".", {"ref": "HEAD"}, {}),
        ("git.stage", ".", {"paths": ["a.txt"]}, {}),
        ("git.stage", ".", {"paths": ["."]}, {}),
        ("git.diff", ".", {}, {"staged": True}),
        ("git.unstage", ".", {"paths": ["a.txt"]}, {}),
        ("git.stage", ".", {"paths": ["a.txt"]}, {}),
        ("git.commit", ".", {"message": "second"}, {}),
        ("git.worktree_create", ".", {"path": "wt", "branch": "fix"}, {}),
        ("git.worktree_list", ".", {}, {}),
        ("code.context", ".", {}, {}),
    ]
    worked = []
    for op, target, given, options in calls:
        envelope = await road.call(op, target, input=given or None, options=options or None)
        if envelope["ok"]:
            worked.append(op)
    return worked


@pytest.mark.parametrize("is_fenced", [True, False], ids=["fenced", "settings alone"])
@pytest.mark.parametrize("name", TRAPS)
async def test_no_trap_goes_off(road: Road, tmp_path: Path, name: str, is_fenced: bool) -> None:
    marker = tmp_path / "marker"
    root = repository(road.root)
    TRAPS[name](root, trap(root, marker))
    road.app.services.provide(Git, Git(is_fenced=is_fenced))
    worked = await call_everything(road)
    assert not marker.exists()
    refused = {"git.stage", "git.commit"} if "filter" in name.split() or name == "included settings" else set()
    if name == "missing objects":
        refused = {"git.show", "git.worktree_create"}
    assert ALL - set(worked) == refused


@pytest.mark.parametrize("name", ["fsmonitor", "external diff", "clean filter", "hooks", "embedded bare repository"])
async def test_the_trap_is_a_real_one(tmp_path: Path, name: str) -> None:
    """With plain git the same repository does run the program: the tests above prove something."""
    marker = tmp_path / "marker"
    root = repository(tmp_path / "root")
    TRAPS[name](root, trap(root, marker))
    place = root / "sub" if name == "embedded bare repository" else root
    for args in (["status"], ["diff"], ["add", "a.txt"], ["commit", "-q", "-m", "x"]):
        try:
            git(place, *args)
        except Exception:
            continue
    assert marker.exists()


async def test_the_environment_of_the_service_reaches_no_git(
    road: Road, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    root = repository(road.root)
    outside = repository(tmp_path / "outside")
    (outside / "a.txt").write_text("CANARY-OUT-7f3a\n")
    script = trap(root, marker)
    # The environment of the service itself is the input here.
    for key, value in {
        "GIT_EXTERNAL_DIFF": str(script),
        "GIT_DIR": str(outside / ".git"),
        "GIT_WORK_TREE": str(outside),
        "GIT_INDEX_FILE": str(outside / ".git" / "index"),
        "GIT_EXEC_PATH": str(root),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(script),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={script}'",
        "GIT_PAGER": str(script),
        "GIT_EDITOR": str(script),
        "GIT_TRACE": str(marker),
        "PATH": f"{root}:" + os.environ["PATH"],
    }.items():
        monkeypatch.setenv(key, value)
    (root / "git").write_bytes(script.read_bytes())
    (root / "git").chmod(0o755)
    envelope = await road.call("git.diff", ".")
    assert "+two" in envelope["data"]["diff"]
    assert "CANARY" not in str(envelope)
    await call_everything(road)
    assert not marker.exists()
