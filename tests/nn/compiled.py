"""Claims about torch.compile, run by `test_compile.py` in a process of its own.

The test suite checks shapes at run time (jaxtyping's hook), and a checked function cannot be
compiled; so this program runs without the hook. It prints what it found as JSON.
"""

import json

import torch
import torch._dynamo

from manyheads.errors import UsageError
from manyheads.models.presets import build
from manyheads.nn.editing.edits import edit
from manyheads.nn.recording.trace import record
from tests.small import TRANSFORMERS, VITS, inputs, randomise


def main() -> None:
    torch.set_num_threads(1)
    findings: dict[str, dict[str, object]] = {}
    for config in (TRANSFORMERS["transformer-base"], VITS["vit-b"]):
        model, arguments = randomise(build(config)).eval(), inputs(config)
        eager = model(*arguments)
        explained = torch._dynamo.explain(model)(*arguments)
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        found = findings[type(model).__name__] = {
            "graphs": explained.graph_count,
            "breaks": explained.graph_break_count,
            "same": torch.allclose(compiled(*arguments), eager, atol=1e-5),
        }
        for name, run in (
            ("full graph", compiled),
            ("with breaks allowed", torch.compile(model, backend="eager")),
        ):
            try:
                with record() as trace:
                    run(*arguments)
            except UsageError as error:
                found[name] = f"UsageError: {error}"
            except Exception as error:  # reported, and refused by the test
                found[name] = f"{type(error).__name__}: {error}"
            else:
                found[name] = f"answered, with {len(trace)} records"
            try:
                with edit() as changes:
                    changes.state("encoder", 1).zero()
                    run(*arguments)
            except UsageError as error:
                found[f"edited {name}"] = f"UsageError: {error}"
            except Exception as error:  # reported, and refused by the test
                found[f"edited {name}"] = f"{type(error).__name__}: {error}"
        # The way out that the message names.
        with record() as trace:
            answer = compiled._orig_mod(*arguments)  # type: ignore[attr-defined]
        found["uncompiled"] = torch.equal(answer, eager) and len(trace) > 0
        # And the compiled model is unharmed.
        found["afterwards"] = torch.equal(compiled(*arguments), eager)
    print(json.dumps(findings))


if __name__ == "__main__":
    main()
