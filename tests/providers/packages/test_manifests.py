"""Which scripts a manifest defines, and the argv that runs each."""

from computer_linker.providers.packages.manifests import (
    Script,
    node_manager,
    python_manager,
    scripts_of,
    with_arguments,
)


def test_package_json_scripts_run_by_the_lock_files_manager() -> None:
    text = '{"scripts": {"build": "tsc", "--evil": "x", "bad name": "x", "test:unit": "jest", "n": 3}}'
    assert scripts_of("package.json", text, "pnpm") == [
        Script("build", "package.json", "pnpm", "tsc", ("pnpm", "run", "build")),
        Script("test:unit", "package.json", "pnpm", "jest", ("pnpm", "run", "test:unit")),
    ]
    for names, manager in (
        (["yarn.lock"], "yarn"), (["bun.lockb"], "bun"), (["pnpm-lock.yaml"], "pnpm"), (["package-lock.json"], "npm"), ([], "npm"),
    ):  # fmt: skip
        assert node_manager(frozenset(names), "{}") == manager
    assert node_manager(frozenset(), '{"packageManager": "yarn@4.1.0"}') == "yarn"
    assert node_manager(frozenset(), '{"packageManager": "../evil@1"}') == "npm"


def test_arguments_are_kept_from_the_manager() -> None:
    script = Script("t", "package.json", "npm", "x", ("npm", "run", "t"))
    assert with_arguments(script, ["--ignore-scripts"]) == ["npm", "run", "t", "--", "--ignore-scripts"]
    assert with_arguments(script, []) == ["npm", "run", "t"]


def test_pyproject_scripts_and_tasks() -> None:
    text = """
[project.scripts]
serve = "app.main:run"
bad = "app.main:run(); import os"
odd = "os;x:y"
[tool.poe.tasks]
lint = "ruff check"
[tool.pdm.scripts]
docs = {cmd = "mkdocs"}
"""
    found = {script.name: script.argv for script in scripts_of("pyproject.toml", text, "uv")}
    assert (
        found["serve"] == ("uv", "run", "serve")
        and found["lint"] == ("poe", "lint")
        and found["docs"] == ("pdm", "run", "docs")
    )
    assert "odd" not in found
    plain = {script.name: script.argv for script in scripts_of("pyproject.toml", text, "python")}
    assert plain["serve"][:2] == ("python3", "-c") and plain["bad"][2].endswith(".run())")
    assert python_manager(frozenset({"poetry.lock"})) == "poetry" and python_manager(frozenset()) == "python"


def test_make_targets_and_just_recipes() -> None:
    make = ".PHONY: all\nall: build\nbuild: a.o b.o\n\tcc\nCC := gcc\nX::=1\n%.o: %.c\n-evil:\n"
    assert [script.name for script in scripts_of("Makefile", make, "make")] == ["all", "build"]
    assert scripts_of("Makefile", make, "make")[0].argv == ("make", "--", "all")
    just = "set shell := ['sh']\nalias b := build\nbuild target='x':\n  echo\n@test:\n  echo\nversion := '1'\n"
    assert [script.name for script in scripts_of("justfile", just, "just")] == ["build", "test"]


def test_an_unreadable_manifest_has_no_scripts() -> None:
    for source, text in (
        ("package.json", "{"),
        ("package.json", "[" * 5000),
        ("pyproject.toml", "= x"),
        ("package.json", "[]"),
    ):
        assert scripts_of(source, text, "npm") == []  # type: ignore[arg-type]
