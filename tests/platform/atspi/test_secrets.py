"""A secret typed by name into real toolkits: into a password field of its program, and nowhere else."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from computer_linker.computer.local.probe import this_computer
from computer_linker.vault.secret import StoredSecret
from computer_linker.vault.vault import Vault
from support.canary import CANARY, is_in
from support.desktop import Desktop
from support.forms import Form, on_the_bus
from support.road import Road, computer_scope
from support.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.desktop]


@pytest.fixture
async def typing(tmp_path: Path, desktop: Desktop, form: Form) -> AsyncIterator[Session]:
    computer = this_computer(desktop.env)
    scope = computer_scope(secrets=["login", "elsewhere"])
    async with Road.open(tmp_path, scopes=[scope], computer=computer) as road:
        await on_the_bus(computer, form)
        vault = road.app.services.use(Vault)
        for name, app in (("login", form.app), ("elsewhere", "another-program"), ("forbidden", form.app)):
            made = StoredSecret(name=name, application=app, variable="X", value=CANARY)
            vault.add(made, replace=False)
        yield Session(road, form)


async def test_a_password_field_takes_it_and_nothing_shows_it(typing: Session) -> None:
    held = await typing.data("clipboard.write", input={"text": "what a person copied"})
    assert held is not None
    reply = await typing.call("desktop.type_text", typing.at(None, "secret"), input={"text": {"secret": "login"}})
    assert reply["ok"] and reply["data"]["method"] in ("set_text", "keys"), reply
    await typing.form.told("text", lambda one: one["field"] == "secret" and one["text"] == CANARY)
    shown = [
        reply,
        await typing.data("ui.tree", typing.form.app, options={"maxDepth": 32}),
        await typing.data("clipboard.read"),
        await typing.data("history.last", ""),
    ]
    assert not any(is_in(json.dumps(one)) for one in shown)
    assert "what a person copied" in json.dumps(shown[2])


@pytest.mark.parametrize(
    ("field", "name", "code"),
    [
        ("entry", "login", "conflict"),
        ("secret", "elsewhere", "permission_denied"),
        ("secret", "forbidden", "permission_denied"),
        ("secret", "unknown", "permission_denied"),
    ],
)
async def test_no_other_field_program_or_scope_gets_it(typing: Session, field: str, name: str, code: str) -> None:
    before = len(typing.form.events("text"))
    reply = await typing.call("desktop.type_text", typing.at(None, field), input={"text": {"secret": name}})
    assert reply["error"]["code"] == code, reply
    assert len(typing.form.events("text")) == before
