"""config.validate: check config.json."""

from collections.abc import Iterator

from anyio import to_thread

from computer_linker.config.diagnose import Finding
from computer_linker.errors import ConfigInvalid
from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, owner_operation
from computer_linker.service.doctor import ReleaseReadiness, diagnosis
from computer_linker.service.settings import live_config


class Validity(Model):
    valid: bool
    findings: list[Finding]
    release_readiness: ReleaseReadiness


def _text(result: Validity) -> Iterator[Shown]:
    state = "valid" if result.valid else "not valid, and refused"
    yield f"config.json is {state}."
    for item in result.findings:
        yield f"{item.severity}: {item.message}{'' if item.message.endswith(('.', '?')) else '.'} {item.remedy}".rstrip()


@owner_operation(
    "config.validate",
    effect=Effect.OBSERVE,
    text=_text,
    exit_code=lambda result: 1 if result.release_readiness.status == "blocked" else 0,
    examples=[Example("Is it valid?", {})],
)
async def config_validate(ctx: Context) -> Validity:
    """Check the file, name every problem with its line and column, and tell whether a release could go out from here."""
    home = ctx.services.home

    def look() -> Validity:
        config, refusal = None, None
        try:
            config = live_config(home).current()
        except ConfigInvalid as error:
            if not error.problems:
                raise
            refusal = error
        found = diagnosis(config, home, refusal)
        return Validity(valid=config is not None, findings=found.findings, release_readiness=found.release_readiness)

    return await to_thread.run_sync(look)
