"""The console script. `stdio` must start in milliseconds, so nothing heavy is imported before it is ruled out."""

import os
import sys


def main() -> int:
    """Run the command line given in sys.argv."""
    # Whatever package is installed beside this one could observe every model, and to look for one costs a tenth of a start.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    if sys.argv[1:2] == ["stdio"] and len(sys.argv) == 2:
        from computer_linker.transports.stdio import main as stdio

        return stdio()
    if sys.argv[1:3] == ["serve", "--socket-only"]:
        from computer_linker.serve.start import main as start

        return start(sys.argv[3:])
    from computer_linker.cli.app import main as cli

    return cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
