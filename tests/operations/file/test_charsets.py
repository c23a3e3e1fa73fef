"""Texts that are not UTF-8: recognised, read, and patched and written in the charset they have."""

import codecs

import pytest

from support.road import Road

pytestmark = pytest.mark.anyio
GERMAN = "Größe und Länge der Straße müssen übereinstimmen.\r\nÄpfel, Öl und Übermut: das läßt sich ändern.\r\n" * 4
JAPANESE = "これは日本語の文章です。\n設定ファイルを読み込んでください。\n東京都で会議が開かれました。\n" * 4
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю.\n" * 4
SAMPLES = {
    "cp1252": (GERMAN, b""),
    "shift_jis": (JAPANESE, b""),
    "euc_jp": (JAPANESE, b""),
    "cp1251": (RUSSIAN, b""),
    "utf-16-le": (GERMAN, codecs.BOM_UTF16_LE),
    "utf-16-be": (JAPANESE, codecs.BOM_UTF16_BE),
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_legacy_text_is_recognised_and_kept_by_a_patch_and_a_write(name: str, road: Road) -> None:
    text, mark = SAMPLES[name]
    path = road.root / "a.txt"
    path.write_bytes(content := mark + text.encode(name))
    assert await road.code("file.read", "a.txt") == "invalid_request"
    found = await road.data("file.read", "a.txt", options={"charset": "auto"})
    assert found["content"] == text and found["charset"].startswith(name)
    old = text.splitlines()[1]
    patched = {"edits": [{"oldText": old, "newText": old[::-1], "replaceAll": True}]}
    await road.data("file.patch", "a.txt", input=patched)
    assert path.read_bytes() == mark + text.replace(old, old[::-1]).encode(name)
    await road.data("file.write", "a.txt", input={"content": text}, options={"charset": found["charset"]})
    assert path.read_bytes() == content


async def test_a_character_that_the_charset_lacks_changes_nothing(road: Road) -> None:
    path = road.root / "a.txt"
    path.write_bytes(content := GERMAN.encode("cp1252"))
    edits = [{"oldText": "Äpfel", "newText": "日本", "replaceAll": True}]
    assert await road.code("file.patch", "a.txt", input={"edits": edits}) == "invalid_request"
    written = {"input": {"content": "日本"}, "options": {"charset": "cp1252"}}
    assert await road.code("file.write", "a.txt", **written) == "invalid_request"
    assert path.read_bytes() == content


async def test_line_ends_and_marks_survive_a_patch(road: Road) -> None:
    path = road.root / "a.txt"
    path.write_bytes(codecs.BOM_UTF8 + "eins\r\nzwei\r\nGröße\r\n".encode())
    await road.data("file.patch", "a.txt", input={"edits": [{"oldText": "zwei\nGröße", "newText": "zwo\nLänge"}]})
    assert path.read_bytes() == codecs.BOM_UTF8 + "eins\r\nzwo\r\nLänge\r\n".encode()
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -2,2 +2,2 @@\n-zwo\n+zwei\n Länge\n"
    await road.data("file.patch", input={"diff": diff})
    assert path.read_bytes() == codecs.BOM_UTF8 + "eins\r\nzwei\r\nLänge\r\n".encode()


async def test_an_ascii_edit_keeps_every_other_byte_of_any_file(road: Road) -> None:
    path = road.root / "a.txt"
    path.write_bytes(b"caf\xe9 one \x81\xff\n")
    await road.data("file.patch", "a.txt", input={"edits": [{"oldText": "one", "newText": "two"}]})
    assert path.read_bytes() == b"caf\xe9 two \x81\xff\n"


async def test_bytes_that_are_no_text_have_no_charset(road: Road) -> None:
    (road.root / "a.bin").write_bytes(bytes(range(256)) * 8)
    assert await road.code("file.read", "a.bin", options={"charset": "auto"}) == "invalid_request"
    assert await road.code("file.read", "a.bin", options={"charset": "no-such"}) == "invalid_request"
    assert await road.code("file.read", "a.bin", options={"charset": "rot13"}) == "invalid_request"
