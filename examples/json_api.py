"""Without this package: the JSON API with nothing but the standard library.

COMPUTER_LINKER_TOKEN=... python examples/json_api.py http://127.0.0.1:3939 app
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any


def control(base: str, **request: Any) -> dict[str, Any]:
    """One action; the envelope tells the outcome whatever the HTTP status is."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['COMPUTER_LINKER_TOKEN']}"}
    asked = urllib.request.Request(f"{base}/api/v1/control", json.dumps(request).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(asked) as answer:  # noqa: S310
            value: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as refused:
        value = json.load(refused)
        refused.close()
    return value


if __name__ == "__main__":
    base, scope = sys.argv[1:3]
    print(control(base, action="get_computer_info", include=["identity"])["machineName"])
    listed = control(base, action="computer_operation", scope=scope, op="file.list", target=".")
    print(" ".join(entry["name"] for entry in listed["data"]["entries"]))
    print(control(base, action="computer_operation", scope=scope, op="file.read", target="../x")["error"]["code"])
