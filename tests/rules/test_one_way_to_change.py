"""`ctx.change` is the only way an operation changes files: no module above the context reaches past it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "computer_linker"
FOLDERS = ("operations", "tools", "transports", "dispatch", "fleet", "client")
FACET = {"change", "rehearse"}
"""Methods of the files facet that change, prepare to change, or keep for undo."""
ON_DISK = {
    "write_text", "write_bytes", "unlink", "rmdir", "rmtree", "makedirs", "symlink_to", "hardlink_to", "touch", "truncate",
    "copyfile", "copytree",
}  # fmt: skip
OF_MODULES = {
    "os": {"rename", "replace", "remove", "mkdir", "link", "symlink", "write", "pwrite", "ftruncate", "chmod", "chown"},
    "shutil": {"move", "copy", "copy2"},
}


def changes_past_the_context(code: str, *, is_operation: bool) -> list[str]:
    """The calls in a module that change files by another way, each with its line."""
    found: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Attribute):
            on = called.value
            is_facet = isinstance(on, ast.Attribute | ast.Name) and _name(on) == "files" and called.attr in FACET
            of_module = isinstance(on, ast.Name) and called.attr in OF_MODULES.get(on.id, ())
            if is_facet or (is_operation and (called.attr in ON_DISK or of_module)):
                found.append(f"{node.lineno}: {ast.unparse(called)}")
        elif is_operation and isinstance(called, ast.Name) and called.id in ("open", "Snapshot"):
            found.append(f"{node.lineno}: {called.id}")
    return found


def _name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_are_changed_by_the_context_alone(folder: str) -> None:
    is_operation = folder in ("operations", "tools")
    files = sorted((SOURCE / folder).rglob("*.py"))
    assert files
    found = {str(path): changes_past_the_context(path.read_text(), is_operation=is_operation) for path in files}
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "code",
    [
        "await ctx.computer.files.change([change], gate=ctx.durable_intent)",
        "files = ctx.computer.files\nawait files.rehearse([change])",
        "Path(root).write_text('x')",
        "os.replace(one, other)",
        "open(name, 'w').write('x')",
        "shutil.rmtree(folder)",
    ],
)
def test_the_rule_finds_another_way(code: str) -> None:
    wrapped = "async def run(ctx):\n" + "".join(f"    {line}\n" for line in code.splitlines())
    assert changes_past_the_context(wrapped, is_operation=True)


def test_the_rule_lets_the_one_way_pass() -> None:
    assert changes_past_the_context("async def run(ctx):\n    await ctx.change([change])\n", is_operation=True) == []


def test_tools_act_by_operations_alone() -> None:
    """A tool reads where the pointer is; everything else it has a dispatcher do."""
    reached = {
        f"{path.name}: {ast.unparse(node.func)}"
        for path in (SOURCE / "tools").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ".computer." in ast.unparse(node.func)
    }
    assert reached == {"input.py: ctx.computer.pointer.position"}
