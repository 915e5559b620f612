"""`python -m manyheads` is the command `manyheads`."""

import sys


def main() -> None:
    """Import the command and run it; Ctrl-C while it is imported ends it as it does later."""
    try:
        from manyheads.cli.main import main as run
    except KeyboardInterrupt:
        print("manyheads: interrupted.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
