"""Translates bridge requests to dispatcher calls, and their answers back to the bridge's shape."""

import re
from typing import Any

from computer_linker.errors import InvalidRequest
from computer_linker.model.envelope import Call
from computer_linker.transports.bridge.messages import (
    Act,
    Click,
    Find,
    Hotkey,
    Observe,
    RouteGiven,
    TargetGiven,
    TypeText,
    WaitUntil,
)

_PLAIN = re.compile(r"(?:\.\*)?((?:[^\\.^$*+?{}\[\]|()]|\\[^\w\s])*)(?:\.\*)?")
_DONE = {"desktop.click": "clicked", "desktop.typeText": "typed", "desktop.hotkey": "sent"}


def observe_call(scope: str, body: Observe) -> Call:
    """desktop.observe."""
    options = body.options
    return Call(
        scope, "desktop.observe", route_of(body.route), None,
        {
            "includeScreenshot": options.include_screenshot, "includeTree": options.include_ax_tree,
            "maxDepth": options.ax_max_depth, "maxNodes": options.ax_max_nodes,
        },
    )  # fmt: skip


def screenshot_of(scope: str, route: RouteGiven) -> Call:
    """A screenshot of where an act is about to happen, or just did."""
    return Call(scope, "desktop.observe", route_of(route), None, {"includeTree": False})


def find_call(scope: str, body: Find) -> Call:
    """desktop.find."""
    return Call(scope, "desktop.find", route_of(body.route), {"selector": body.selector})


def wait_call(scope: str, body: WaitUntil) -> Call:
    """desktop.wait_until."""
    condition = {"selectorExists": body.condition.selector_exists}
    return Call(
        scope, "desktop.wait_until", route_of(body.route), {"condition": condition}, {"timeoutSeconds": body.timeout_ms / 1000}
    )  # fmt: skip


def act_call(scope: str, body: Act) -> Call:
    """The call that a confirmation is bound to: identical for the intent and for the request that spends it."""
    match body:
        case Click():
            return Call(scope, "desktop.click", _aim(body.target, body.route))
        case TypeText():
            given: dict[str, Any] = {"text": body.text}
            options = {"clearBefore": body.options.clear_before}
            if body.target is None:
                return Call(scope, "desktop.type_text", None, given | _keyboard_at(body.route), options)
            return Call(scope, "desktop.type_text", _aim(body.target, body.route), given, options)
        case Hotkey():
            return Call(scope, "desktop.hotkey", None, {"keys": body.keys} | _keyboard_at(body.route))


def route_of(route: RouteGiven) -> Any:
    """The route in the form operations take; None is the focused window."""
    found: dict[str, Any] = {}
    if route.app is not None:
        found["app"] = route.app.bundle_id or route.app.name
        found["pid"] = route.app.pid
    if route.window is not None:
        found["window"] = route.window.id or _plain_text(route.window.title_pattern)
    return {name: value for name, value in found.items() if value is not None} or None


def elements_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Elements in the bridge's shape."""
    return [element_ref(node) for node in data["elements"]]


def element_ref(node: dict[str, Any]) -> dict[str, Any]:
    """One element, with a fingerprint of its properties when it was found."""
    frame = node.get("bounds")
    place = "" if frame is None else "x={x},y={y},w={width},h={height}".format(**frame)
    return {
        "elementId": node["ref"],
        "fingerprint": f"{node['role']}|{node['name'][:200]}|{place}",
        "role": node["role"],
        "title": node["name"],
        "value": node.get("value"),
        "frame": frame,
    }


def done_word(method: str) -> str:
    """The word in an act's answer for what was done."""
    return _DONE[method]


def _aim(target: TargetGiven, route: RouteGiven) -> Any:
    if target.element_ref is not None:
        return target.element_ref.element_id
    return {"selector": target.selector, "route": route_of(route)}


def _keyboard_at(route: RouteGiven) -> dict[str, Any]:
    place = route_of(route)
    return {} if place is None else {"route": place}


def _plain_text(pattern: str | None) -> str | None:
    """The plain text in a pattern such as `.*Safari.*`. Other patterns are refused: a regular expression may never terminate."""
    if pattern is None:
        return None
    plain = _PLAIN.fullmatch(pattern)
    if plain is None or not plain[1]:
        raise InvalidRequest(
            "titlePattern is a text, with .* before and after it at most.", field="route.window.titlePattern"
        )
    return re.sub(r"\\(.)", r"\1", plain[1])
