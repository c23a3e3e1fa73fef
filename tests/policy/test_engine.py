"""The order of decisions, and that a refusal says no more than it must."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from computer_linker.config.schema import Config
from computer_linker.errors import InvalidRequest, PermissionDenied, UnknownScope
from computer_linker.model.capability import Capability
from computer_linker.model.effect import Effect
from computer_linker.model.principal import Principal
from computer_linker.model.scope import Scope, ScopeKind, ScopePolicy
from computer_linker.policy.engine import find_scope, judge, refuse

ANYONE = Principal("local:me", "local_user", "s", "c")


@dataclass(frozen=True)
class Wanted:
    """What an operation asks for."""

    name: str = "file.write"
    needs: frozenset[Capability] = frozenset({Capability.FS_WRITE})
    needs_any: frozenset[Capability] = frozenset()
    effect: Effect = Effect.CHANGE
    on: ScopeKind = "folder"
    asked_by: None = None


def scope(*capabilities: str, **policy: Any) -> Scope:
    return Scope(id="app", roots=["/srv/app"], capabilities=list(capabilities), policy=ScopePolicy(**policy))


def test_a_missing_capability_is_named() -> None:
    verdict = judge(scope("fs:read"), Wanted(), ANYONE)
    assert (verdict.decision, verdict.missing, verdict.needs) == ("deny", ["fs:write"], ["fs:write"])
    with pytest.raises(PermissionDenied):
        refuse(verdict, Wanted())


def test_a_capability_comes_before_the_scope_type() -> None:
    verdict = judge(scope("fs:read"), Wanted(on="computer"), ANYONE)
    assert verdict.missing == ["fs:write"]


def test_a_wrong_scope_type_is_an_invalid_request() -> None:
    wanted = Wanted(on="computer")
    with pytest.raises(InvalidRequest):
        refuse(judge(scope("fs:write"), wanted, ANYONE), wanted)


def test_reading_implies_searching_and_git_reading_and_nothing_else_implies_anything() -> None:
    granted = scope("fs:read").granted
    assert granted == {Capability.FS_READ, Capability.SEARCH_READ, Capability.GIT_READ}
    for capability in Capability:
        if capability is not Capability.FS_READ:
            assert scope(capability.value).granted == {capability}


def test_one_of_several_capabilities_is_enough_where_any_will_do() -> None:
    wanted = Wanted(needs=frozenset(), needs_any=frozenset({Capability.COMMAND_RUN, Capability.PACKAGE_RUN}))
    assert judge(scope("package:run"), wanted, ANYONE).decision == "allow"
    assert judge(scope("fs:read"), wanted, ANYONE).missing == ["command:run", "package:run"]


@pytest.mark.parametrize(
    ("confirm", "effect", "decision"),
    [
        ("never", Effect.ACT, "allow"),
        ("act", Effect.OBSERVE, "allow"),
        ("act", Effect.CHANGE, "allow"),
        ("act", Effect.ACT, "ask"),
        ("all", Effect.CHANGE, "ask"),
        ("all", Effect.ACT, "ask"),
        ("all", Effect.OBSERVE, "allow"),
    ],
)
def test_what_a_person_is_asked_about(confirm: str, effect: Effect, decision: str) -> None:
    assert judge(scope("fs:write", confirm=confirm), Wanted(effect=effect), ANYONE).decision == decision


def test_a_scope_is_found_by_its_exact_id_alone() -> None:
    config = Config(machine_id="m", machine_name="m", scopes=[scope("fs:read")])
    assert find_scope(lambda: config, "app", ANYONE).id == "app"
    for wrong in ("App", "/srv/app", "app/", "__proto__", "", "Main app"):
        with pytest.raises(UnknownScope):
            find_scope(lambda: config, wrong, ANYONE)


def test_a_caller_with_grants_sees_only_those() -> None:
    config = Config(machine_id="m", machine_name="m", scopes=[scope("fs:read", "fs:write")])
    stranger = replace(ANYONE, grants=frozenset({"other"}))
    with pytest.raises(UnknownScope):
        find_scope(lambda: config, "app", stranger)
    reader = replace(ANYONE, grants=frozenset({"app:fs:read"}))
    assert find_scope(lambda: config, "app", reader).id == "app"
    assert judge(config.scopes[0], Wanted(), reader).missing == ["fs:write"]
