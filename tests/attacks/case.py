"""One attack: what is laid out, what is asked, and what decides whether it failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attacks.ground import Answer, Field, Ground

OUTSIDE = ("path_out_of_scope", "permission_denied", "invalid_request")


@dataclass(frozen=True)
class Case:
    """A request with its oracle. `ok` None means either answer is right as long as the rest holds.

    `max_ms` is for requests that could hang, and generous; `max_processor_ms` bounds what a request may cost the service.
    """

    id: str
    scope: str
    op: str
    target: Any = None
    input: Any = None
    options: Any = None
    setup: Callable[[Ground], object] = lambda ground: None
    ok: bool | None = None
    codes: Sequence[str] = ()
    hides: Sequence[str] = ()
    absent: Sequence[str] = ()
    present: Sequence[str] = ()
    unchanged: Sequence[str] = ()
    unstored: Sequence[str] = ()
    max_ms: float | None = None
    max_processor_ms: float | None = None
    max_growth_mb: float | None = None
    after: Callable[[Field, Answer], None] = lambda field, answer: None


def fight(field: Field, case: Case) -> Answer:
    """Run one case and judge it."""
    ground = field.ground
    ground.lay()
    case.setup(ground)
    before = {path: ground.picture(path) for path in case.unchanged}
    memory, processor = field.memory_peak_mb(), field.processor_ms()
    answer = field.call(case.scope, case.op, case.target, input=case.input, options=case.options)
    _judge(field, case, answer)
    assert {path: ground.picture(path) for path in case.unchanged} == before
    if case.max_processor_ms is not None:
        assert field.processor_ms() - processor < case.max_processor_ms
    if case.max_growth_mb is not None:
        assert field.memory_peak_mb() - memory < case.max_growth_mb
    if case.unstored:
        kept = field.stored()
        assert not [secret for secret in case.unstored if secret.encode() in kept]
    case.after(field, answer)
    return answer


def _judge(field: Field, case: Case, answer: Answer) -> None:
    fill = field.ground.fill
    assert case.ok is None or answer.ok is case.ok, answer.text
    assert answer.ok or not case.codes or answer.code in case.codes, answer.text
    assert not [text for text in case.hides if fill(text) in answer.text], answer.text
    assert not [path for path in case.absent if Path(fill(path)).exists()]
    assert not [path for path in case.present if not Path(fill(path)).exists()]
    assert case.max_ms is None or answer.took_ms < case.max_ms
    assert "Traceback" not in answer.text
    assert answer.code != "execution_failed" or "inside the service" not in answer.text, field.service.log[-4000:]
