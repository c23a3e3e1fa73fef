"""Change a file only if nobody else did meanwhile, then take the change back. The async client, over HTTP, the socket or stdio.

    python examples/change_and_take_back.py app notes.txt
    python examples/change_and_take_back.py app notes.txt --url http://127.0.0.1:3939/mcp

Over HTTP the token is read from COMPUTER_LINKER_TOKEN.
"""

import argparse
import os

import anyio

from computer_linker.client import AsyncClient
from computer_linker.errors import Conflict
from computer_linker.operations.file.read import FileText


async def main() -> None:
    """Read, write with the digest of what was read, show that a stale digest is refused, undo."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scope")
    parser.add_argument("file")
    parser.add_argument("--url")
    asked = parser.parse_args()
    token = os.environ.get("COMPUTER_LINKER_TOKEN")
    opening = AsyncClient.over_http(asked.url, token=token) if asked.url else AsyncClient.over_stdio()
    async with opening as linker:
        scope = linker.scope(asked.scope)
        before = (await scope.call("file.read", asked.file)).into(FileText)
        fresh = {"ifSha256": before.sha256}
        written = await scope.call("file.write", asked.file, {"content": before.content + "one more line\n"}, fresh)
        print(f"written: {written.effect}")
        try:
            await scope.call("file.write", asked.file, {"content": "lost"}, fresh)
        except Conflict as refused:
            print(f"refused: {refused.code}")
        await scope.call("file.undo", input={"operationId": written.operation_id})
        after = (await scope.call("file.read", asked.file)).into(FileText)
        print(f"as before: {after.sha256 == before.sha256}")


if __name__ == "__main__":
    anyio.run(main)
