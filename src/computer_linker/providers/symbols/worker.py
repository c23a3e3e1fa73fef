"""The parsing child process: grammars are native code and sources may be hostile, so neither runs in the service.

stdin has a line of JSON (`language`, `size`) and that many bytes per source; stdout gets one line of JSON for each.
"""

import json
import signal
import sys

from computer_linker.providers.symbols.extract import GrammarMissing, symbols_in

_SECONDS_A_FILE = 5


def main() -> int:
    """Parse until the input ends. A file that takes too long ends this process; the service continues with the next."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while header := source.readline():
        request = json.loads(header)
        content = source.read(request["size"])
        signal.alarm(_SECONDS_A_FILE)
        try:
            answer: object = symbols_in(content, request["language"])
        except GrammarMissing:
            answer = None
        signal.alarm(0)
        sink.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        sink.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
