"""browser.upload: give files of the scope to a file field of the open page."""

import json
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from computer_linker.approvals.request import Preview
from computer_linker.changes.fingerprints import Fingerprints
from computer_linker.errors import Conflict, LimitExceeded
from computer_linker.model.effect import Known
from computer_linker.operations.browser.acting import Aim, PageActed, PageActOptions, acted, aimed, page_act
from computer_linker.operations.browser.preview import show_page_act
from computer_linker.providers.browser.page import focus, look
from computer_linker.registry import Capability, Context, Example, Model

_MAX_BYTES = 50 << 20


class UploadInput(Model):
    files: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=4096)]],
        Field(min_length=1, max_length=20, description="Paths inside the scope."),
    ]


def _is_button(role: str, _input: UploadInput) -> None:
    if role != "button":
        raise Conflict(f"A {role} takes no files.", role=role)


async def show_upload(ctx: Context, target: str, input: UploadInput, options: object = None) -> Preview:
    """The field, and each file by its digest: a page gets what a person was shown."""
    field, prints = await show_page_act(ctx, target, input, fits=_is_button), Fingerprints(ctx.computer.files)
    for name in input.files:
        await prints.add(ctx.path(name), "gives it")
    return replace(field, lines=(*field.lines, *prints.lines), holds={**field.holds, **prints.holds})


@page_act(
    "browser.upload",
    "uploaded files in the browser",
    Example("Attach a report.", {"target": "e7.k3f9", "input": {"files": ["report.pdf"]}}, runs=False),
    also_needs=Capability.FS_READ,
    shows=show_upload,
)
async def browser_upload(
    ctx: Context, target: str, input: UploadInput, options: PageActOptions = PageActOptions()
) -> PageActed:
    """Put files of the scope into a file field of the open page, by its reference from browser.snapshot, and read it back.

    Each file is read by the scope's rules, as file.read does, and the page gets a copy under the file's own name.
    """
    paths = [ctx.path(name) for name in input.files]
    async with aimed(ctx, "upload", target, options) as aim:
        _is_button(aim.on.role, input)
        await _refuse(aim, len(paths))
        contents: list[tuple[str, bytes]] = []
        for path in paths:
            room = _MAX_BYTES - sum(len(content) for _, content in contents)
            if room <= 0:
                raise LimitExceeded(f"The files are larger than {_MAX_BYTES} bytes together.", limitBytes=_MAX_BYTES)
            content, _stat = await ctx.computer.files.read_whole(path, room)
            contents.append((path.parts[-1], content))
        places = await aim.session.copy_in(contents)
        ctx.note(files=len(paths), bytes=sum(len(content) for _, content in contents))
        await aim.session.ask(("upload", aim.at, *places))
        ctx.effect = await _known(aim, contents) if options.verify else "unverifiable"
        return await acted(ctx, aim, await look(aim.session, ctx.scope), options)
    raise AssertionError("the body returns")


async def _refuse(aim: Aim, number: int) -> None:
    found = await focus(aim.session, aim.at)
    if (found.tag, found.type) != ("INPUT", "file") or found.is_fixed:
        raise Conflict("The element is no file field that takes files now.", role=aim.on.role)
    if number > 1 and not found.is_multiple:
        raise Conflict("The field takes one file only.")


async def _known(aim: Aim, contents: list[tuple[str, bytes]]) -> Known:
    answers = await aim.session.ask(
        ("eval", "JSON.stringify([...document.activeElement.files].map(f => [f.name, f.size]))")
    )
    wanted = [[name, len(content)] for name, content in contents]
    try:
        return "confirmed" if json.loads(str(answers[0].get("result"))) == wanted else "partial"
    except ValueError:
        return "unverifiable"
