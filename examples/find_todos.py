"""Every TODO of a scope, as JSON lines. The blocking client, in ten lines.

python examples/find_todos.py app
"""

import json
import sys

from computer_linker.client import Client


def main(scope_id: str) -> None:
    """Search, page by page, and print what is found."""
    with Client.over_socket() as linker:
        scope = linker.scope(scope_id)
        cursor: str | None = None
        while True:
            options = {"fixedStrings": True, **({"cursor": cursor} if cursor else {})}
            page = scope.call("file.search", ".", {"query": "TODO"}, options).data
            for match in page["matches"]:
                print(json.dumps({"path": match["path"], "line": match["line"], "text": match["preview"].strip()}))
            cursor = page.get("nextCursor")
            if cursor is None:
                return


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "app")
