"""T12, T15: what a translator or classifier would answer after each of its layers."""

import torch

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import counted, judged, resampled
from manyheads.labs.shipped_models import greedy, image_model, images, network, pairs
from manyheads.lens.cause.patching import end_early
from manyheads.lens.panels import Cell
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.nn.editing.edits import edit

HALF = 0.5  # of the score after the last layer
PUBLISHED = "simpler subtasks"  # are solved by low and intermediate layers: Langedijk et al. 2024


def texts(name: str, size: Size, root: str | None) -> Measured:
    """Translate with each stack ended after each layer: chrF of each sentence, and BLEU."""
    both = pairs(name, "valid", size.sentences, root)
    references = [reference for _, reference in both]
    config = network(name).config
    found: Measured = {}
    for stack in ("encoder", "decoder"):
        last = getattr(config, f"{stack}_layers")
        found[stack] = {}
        for layer in range(1, last + 1):
            with edit() as changes:
                end_early(changes, stack, layer, last)
                answers = [text for text, _ in greedy(name, [source for source, _ in both])]
            chrf = TEXT_METRICS["chrf"].statistics(answers, references)
            found[stack][str(layer)] = {
                "scores": [round(chrf.value(row), 2) for row in chrf.rows],
                "BLEU": round(TEXT_METRICS["bleu"](answers, references).value, 2),
            }
    return found | {"norm": config.norm}


@torch.no_grad()
def classes(name: str, size: Size, root: str | None) -> Measured:
    """Classify with the encoder ended after each layer: 100 for each right answer, else 0."""
    model = image_model(name)
    pixels, labels = images(name, size.images, root)
    last = model.config.layers
    found: Measured = {}
    for layer in range(1, last + 1):
        with edit() as changes:
            end_early(changes, "encoder", layer, last)
            right = model(pixels).argmax(dim=-1) == labels
        found[str(layer)] = {"scores": [100.0 * each for each in right.tolist()]}
    return {"encoder": found, "norm": model.config.norm}


def rows(measured: dict[str, Measured]) -> list[list[Cell]]:
    """Judge each stack: whether an earlier layer gives half of the last one's score.

    The condition on BLEU was added after the first numbers by chrF were seen.
    """
    table: list[list[Cell]] = []
    for name, stacks in measured.items():
        for stack in ("encoder", "decoder"):
            layers = stacks.get(stack, {})
            if not layers:
                continue
            scores = {int(layer): layers[layer]["scores"] for layer in layers}
            last = max(scores)
            bleu = {int(layer): layers[layer].get("BLEU", 0.0) for layer in layers}
            part = {
                layer: (resampled((each, scores[last])).low or 0) > HALF
                and bleu[layer] >= HALF * bleu[last]
                for layer, each in scores.items()
                if layer < last
            }
            middle = max(last // 2, 1)
            cells = [resampled((scores[n], None)) for n in (1, middle, last)]
            verdict = judged(any(part.values()), part[middle])
            lensed = stack == "encoder" and "BLEU" in layers[str(last)]  # of a translator
            published = PUBLISHED if lensed else ""
            table.append([name, stacks["norm"], stack, published, *cells, verdict])
    return table


def conclude(table: list[list[Cell]]) -> str:
    """Count the verdicts for each kind of norm."""
    parts = []
    for norm in ("post", "pre"):
        verdicts = [str(row[-1]) for row in table if row[1] == norm]
        if verdicts:
            parts.append(f"{counted(verdicts)} of {len(verdicts)} stacks of {norm}-norm models")
    return (
        "That a model's answer can be read from its middle layer, with half of the score after "
        f"the last one, {'; '.join(parts)}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each model."""
    measured = bench.measured("{}", size.translators, texts, size, bench.root)
    measured |= bench.measured("{}", size.classifiers, classes, size, bench.root)
    curves = {
        stack: {
            f"{name} ({stacks['norm']}-norm)": {
                int(layer): resampled((each["scores"], None))
                for layer, each in stacks[stack].items()
            }
            for name, stacks in measured.items()
            if stack in stacks
        }
        for stack in ("encoder", "decoder")
    }
    bleu: list[list[Cell]] = [
        [name, stack, *(layers[n]["BLEU"] if n in layers else None for n in "123456")]
        for name, stacks in measured.items()
        for stack, layers in stacks.items()
        if name in size.translators and stack != "norm"
    ]
    table = rows(measured)
    return conclude(table), {"verdicts": table, "curves": curves, "bleu": bleu}
