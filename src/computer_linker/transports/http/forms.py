"""Forms and queries, in which a parameter that is given twice has no meaning."""

from urllib.parse import parse_qsl

from computer_linker.transports.http.body import Receive, read_body
from computer_linker.transports.http.guards import Headers, Refused

_KIND = b"application/x-www-form-urlencoded"
_MAX_FORM = 64 * 1024
_MAX_FIELDS = 200


def every_value(form: str) -> list[tuple[str, str]]:
    """Every field with its value, in order. Raises Refused for more fields than any form of ours has."""
    try:
        return parse_qsl(form, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise Refused(400, "The form has too many fields.") from None


def single_values(query: str) -> tuple[dict[str, str], set[str]]:
    """The query's values, and the names of parameters given twice, which count as not given."""
    values: dict[str, str] = {}
    twice: set[str] = set()
    for name, value in every_value(query):
        if name in values:
            twice.add(name)
        values[name] = value
    return {name: value for name, value in values.items() if name not in twice}, twice


def check_form_headers(headers: Headers) -> None:
    """Refuse a body that is not announced as a form: what other pages can send without asking is sent otherwise."""
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != _KIND:
        raise Refused(415, "A form is sent here, as application/x-www-form-urlencoded, and nothing else.")


async def bounded_body(receive: Receive) -> bytes:
    """The body of a form. Raises Refused for one that no form of ours can be."""
    body = await read_body(receive)
    if len(body) > _MAX_FORM:
        raise Refused(413, "The form is too large.")
    return body
