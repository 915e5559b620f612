"""`python -m manyheads` is the command `manyheads`."""

from manyheads import interruption


def main() -> None:
    """Import the command and run it."""
    from manyheads.cli.main import main as run

    interruption.restore()
    run()


if __name__ == "__main__":
    main()
