"""What is derived from the catalogue: schema, reference, capability table, and the command line's words."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from pydantic import Field

from computer_linker.errors import InvalidRequest
from computer_linker.model.base import Model
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.registry import Context, Example, Operation, operation
from computer_linker.registry.catalog import check_types
from computer_linker.registry.cli_options import command_line, help_text, read_arguments, read_value
from computer_linker.registry.reference import (
    COMMANDS_PAGE,
    EXAMPLES_FILE,
    GLOSSARY_PAGE,
    allowed_by,
    needs_text,
    pages,
    whole_catalog,
    write,
)
from computer_linker.registry.schema import request_schema

ROOT = Path(__file__).parents[2]


class Part(Model):
    name: str
    parts: list["Part"] = []


class WordsInput(Model):
    text: Annotated[str, Field(description="What to say.")]
    times: int = 1
    parts: list[Part] = []


class WordsOptions(Model):
    loud: Annotated[bool, Field(description="Say it loudly.")] = False
    label: str | None = None


class Said(Model):
    said: str


@operation(
    "words.say",
    needs={Capability.FS_READ},
    effect=Effect.OBSERVE,
    aliases=["words.speak"],
    examples=[
        Example(
            "Say hello.", {"target": "you", "input": {"text": "hello there", "times": 2}, "options": {"loud": True}}
        )
    ],
)
async def words_say(ctx: Context, target: str, input: WordsInput, options: WordsOptions = WordsOptions()) -> Said:
    """Say some words. It is here to be derived from."""
    return Said(said=input.text)


OP: Operation = words_say


def no_file(name: str) -> str:
    raise AssertionError(f"nothing asked for {name}")


def test_the_schema_takes_what_the_operation_takes_and_nothing_else() -> None:
    validator = Draft202012Validator(request_schema([OP]))
    good = {"scope": "app", "op": "words.say", "target": "you", "input": {"text": "x", "parts": [{"name": "a"}]}}
    assert validator.is_valid(good)
    assert validator.is_valid({**good, "op": "words.speak"})
    for wrong in (
        {**good, "op": "words.shout"},
        {**good, "extra": 1},
        {**good, "input": {"text": 5}},
        {**good, "input": {"text": "x", "tmies": 2}},
        {**good, "options": {"laud": True}},
        {name: value for name, value in good.items() if name != "target"},
        {name: value for name, value in good.items() if name != "scope"},
    ):
        assert not validator.is_valid(wrong), wrong


def test_the_help_has_every_field_with_its_type_and_default() -> None:
    text = help_text(OP)
    for wanted in (
        "words.say TARGET --scope",
        "text",
        "needed. What to say.",
        "times",
        "default 1",
        "loud",
        "Say it loudly.",
    ):
        assert wanted in text
    assert "computer-linker op words.say you --scope app --input 'text=hello there' --input times=2" in text


def test_words_become_values_of_the_fields_types() -> None:
    words = ["text=123", "times=2", 'parts=[{"name": "a"}]']
    assert read_arguments(OP, "input", words, no_file) == {"text": "123", "times": 2, "parts": [{"name": "a"}]}
    assert read_arguments(OP, "options", ["loud=true", "label=true"], no_file) == {"loud": True, "label": "true"}
    assert read_arguments(OP, "input", ['{"text": "a=b"}', "text=c=d"], no_file) == {"text": "c=d"}


def test_text_can_come_from_a_file_and_an_at_sign_can_be_meant() -> None:
    assert read_arguments(OP, "input", ["text=@notes.txt"], lambda name: f"<{name}>") == {"text": "<notes.txt>"}
    assert read_arguments(OP, "input", ["text=@@you"], no_file) == {"text": "@you"}
    assert read_arguments(OP, "input", ["text=@"], no_file) == {"text": "@"}


@pytest.mark.parametrize("word", ["text", "{not json}", '{"a": 1, "a": 2}'])
def test_words_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises(InvalidRequest):
        read_arguments(OP, "input", [word], no_file)


def test_a_field_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(InvalidRequest) as refused:
        OP.parse("a", {"text": "a"}, {"volume": 3})
    assert refused.value.message == "`options.volume`: there is no such field."
    assert refused.value.details["fields"] == ["loud", "label"]
    with pytest.raises(InvalidRequest) as refused:
        OP.parse("a", {"text": "a", "parts": [{"name": "a", "size": 1}]}, {})
    assert refused.value.message == "`input.parts.0.size`: there is no such field."
    assert "fields" not in refused.value.details, "another model's fields are not named"


def test_a_value_is_json_where_it_is_json() -> None:
    assert [read_value(text) for text in ("1", "true", "null", "[1]", "plain", "NaN")] == [
        1,
        True,
        None,
        [1],
        "plain",
        "NaN",
    ]


def test_every_example_survives_the_way_through_the_command_line() -> None:
    import shlex

    for op in [OP, *whole_catalog().operations.values()]:
        for example in op.examples:
            words = shlex.split(command_line(op.name, example.request))
            for part, flag in (("input", "--input"), ("options", "--option")):
                given = [words[at + 1] for at, word in enumerate(words) if word == flag]
                assert read_arguments(op, part, given, no_file) == example.request.get(part, {}), (
                    op.name,
                    example.title,
                )


def test_the_table_says_what_is_needed() -> None:
    assert needs_text(OP) == "fs:read"
    assert allowed_by([OP])["fs:read"] == ["words.say"]


@pytest.fixture(scope="module")
def operations() -> dict[str, Operation]:
    return dict(whole_catalog().operations)


def test_every_result_is_a_model(operations: dict[str, Operation]) -> None:
    for op in operations.values():
        check_types(op)


def test_every_example_fits_the_published_schema(operations: dict[str, Operation]) -> None:
    schema: dict[str, Any] = request_schema(operations.values())
    Draft202012Validator.check_schema(schema)
    branches = {branch["title"]: Draft202012Validator(branch) for branch in schema["oneOf"]}
    for op in operations.values():
        for example in op.examples:
            request = {"scope": "app", "op": op.name, **example.request}
            errors = [error.message for error in branches[op.name].iter_errors(request)]
            assert errors == [], (op.name, example.title, errors)


def test_the_reference_is_as_the_catalogue_says() -> None:
    folder = ROOT / "docs" / "reference"
    wanted = pages(whole_catalog(), folder)
    stale = [
        name for name, text in wanted.items() if not (folder / name).exists() or (folder / name).read_text() != text
    ]
    extra = sorted(
        {path.name for path in folder.iterdir()} - wanted.keys() - {COMMANDS_PAGE, EXAMPLES_FILE, GLOSSARY_PAGE}
    )
    assert (stale, extra) == ([], []), "run: make docs"


def test_writing_the_reference_removes_pages_of_operations_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("old")
    write(tmp_path)
    assert not (tmp_path / "gone.md").exists()
    assert write(tmp_path) == []
    json.loads((tmp_path / "computer_operation.schema.json").read_text())
