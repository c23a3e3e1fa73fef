"""screen.status: whether screenshots are available here, without taking one."""

from collections.abc import Iterator

from computer_linker.registry.owner import Context, Effect, Example, Model, Shown, Table, owner_operation
from computer_linker.service.screenshots import Screenshots, screenshot_readiness


class ScreenStatus(Model):
    screenshot: Screenshots
    scopes: list[str]


def _text(result: ScreenStatus) -> Iterator[Shown]:
    found = result.screenshot
    detail = f" ({found.permission.detail})" if found.permission.detail else ""
    yield Table(
        [
            ("screenshots", "ready" if found.available else "missing"),
            ("provider", found.backend or "none"),
            ("permission", found.permission.status + detail),
            ("modes", ", ".join(found.modes) or "none"),
            ("scopes", ", ".join(result.scopes) or "none (allow with: computer-linker setup --screen)"),
        ]
    )
    if found.remedy:
        yield f"next: {found.remedy}"


@owner_operation("screen.status", effect=Effect.OBSERVE, text=_text, examples=[Example("Can it be captured?", {})])
async def screen_status(ctx: Context) -> ScreenStatus:
    """Show the capture provider, the system's permission and the scopes that allow it. No pixels are captured."""
    scopes = [scope.id for scope in ctx.services.config.scopes if "screen:capture" in scope.capabilities]
    return ScreenStatus(screenshot=await screenshot_readiness(ctx.computer), scopes=scopes)
