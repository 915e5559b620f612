"""Fuzz the API of `manyheads serve` against its own description, with schemathesis.

    pip install schemathesis
    python scripts/fuzz_api.py                  # the shipped models, a minute or two
    python scripts/fuzz_api.py --examples 500   # for each path

Every path is asked with its examples, at the limits of its parameters, and with what is drawn from
its schema. An answer with a status of 5xx, or with a status, a content type or a body that
/openapi.json does not have, is a failure; each is listed with the request, and the exit code is 1.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


@contextmanager
def server() -> Iterator[str]:
    """Serve the shipped models on a free port; give the address."""
    command = [sys.executable, "-m", "manyheads", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None, "the server did not start"
            yield found[0]
        finally:
            process.terminate()
            process.communicate(timeout=120)


def main() -> int:
    """Run schemathesis against a server of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=50, help="drawn for each path")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with server() as address:
        return subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
                *("--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS)),
                *("--max-examples", str(given.examples), "--seed", str(given.seed)),
                *("--request-timeout", "120", "--no-color"),
            ],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
