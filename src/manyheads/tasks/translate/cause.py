"""Why a translation is as it is: another source in its place, or one word against another."""

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.asks.look_request import LookRequest
from manyheads.errors import UsageError, nearest
from manyheads.generation.text_decoding import Translation
from manyheads.lens.cause.cause_figures import Columns, part_figures, patch_figures
from manyheads.lens.cause.contributions import contributions
from manyheads.lens.cause.patching import Run, linked, words
from manyheads.lens.labels import label
from manyheads.lens.panels import Figure
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.reference import teacher_forcing


def cause_figures(
    translator: Translator, text: str, best: Translation, request: LookRequest
) -> tuple[dict[str, str], list[Figure]]:
    """Show what the request asks for: `instead`, with what is told of it, and `why`."""
    told: dict[str, str] = {}
    figures = []
    if request.instead is not None:
        other = translator.read_source(request.instead).text
        if not other.strip():
            raise UsageError("The other sentence is empty: give one to compare with.")
        ((rival, *_),) = translator.translate([other], details=True)
        figures += _instead(translator, (text, best), (other, rival))
        told = {"instead": other, "instead_translation": rival.text}
    if request.why is not None:
        figures += _why(translator, text, best, request.why, request.why_not)
    return told, figures


def _instead(
    translator: Translator, own: tuple[str, Translation], other: tuple[str, Translation]
) -> list[Figure]:
    text, best = own
    (one, target), (two, target_of_other) = (
        teacher_forcing(translator, source, each.tokens) for source, each in (own, other)
    )
    both = list(zip(target[0].tolist(), target_of_other[0].tolist(), strict=False))
    place = next((n for n, (a, b) in enumerate(both) if a != b), None)
    if place is None:
        raise UsageError(
            f"Both sentences are translated alike ({best.text!r}), so nothing makes a difference: "
            "give one that is translated differently."
        )
    answers = both[place]
    read = target[:, :place]
    names = [translator.tokenizers.target.piece(token) for token in (*read[0].tolist(), *answers)]
    run, run_other = (_run(translator, each, read, answers) for each in (one, two))
    groups = words(translator.read_tokens(text).spans, text)
    tokens = linked(one[0].tolist(), two[0].tolist())
    pairs = [(group, [tokens[n] for n in group]) for group in groups]
    titles = []
    for own_places, places in pairs:
        before = _joined(translator, one[0, own_places].tolist())
        after = _joined(translator, two[0, list(dict.fromkeys(places))].tolist())
        titles.append(before if before == after else f"{before} → {after}")
    source = Columns(titles, pairs, tokens)
    same = [([n], [n]) for n in range(place)]
    written = Columns([label(each) for each in names[:place]], same, range(place))
    question = f"{label(names[-1])}, not {label(names[-2])}"
    return patch_figures(run, run_other, {"encoder": source, "decoder": written}, question)


def _why(
    translator: Translator, text: str, best: Translation, why: str, rival: str | None
) -> list[Figure]:
    source, target = teacher_forcing(translator, text, best.tokens)
    details = [[each.begin, each.end] for each in best.details or []]
    groups = words([each if each[0] < each[1] else None for each in details], best.text)
    found = {
        best.text[details[group[0]][0] : details[group[-1]][1]].strip(".,;:!?\"'»«„“ "): group
        for group in reversed(groups)
    }
    if why not in found:
        raise UsageError(
            f"The translation {best.text!r} does not have the word {why!r}{nearest(why, found)}"
            f"Its words: {', '.join(reversed(found))}."
        )
    own = [best.tokens[n] for n in found[why]]
    first = 1 + found[why][0]  # behind the start
    if rival is None:
        with torch.no_grad():
            logits = translator.model(source, target[:, :first])[0, -1]
        others = [each for each in logits.topk(2).indices.tolist() if each != own[0]][:1]
    else:
        others = translator.tokenizers.target.encode([rival])[0]
    common = next((n for n, (a, b) in enumerate(zip(own, others, strict=False)) if a != b), None)
    if common is None:
        raise UsageError(f"{why!r} and {rival!r} are the same word, or one begins with the other.")
    read = torch.cat((target[:, :first], translator.tensor(own[:common]).to(target)), dim=1)
    run = _run(translator, source, read, (others[common], own[common]))
    names = [translator.tokenizers.target.piece(each[common]) for each in (own, others)]
    sources = words(translator.read_tokens(text).spans, text)
    titles = [_joined(translator, source[0, group].tolist()) for group in sources]
    question = f"{label(names[0])}, not {label(names[1])}"
    return part_figures(contributions(lambda: run(1)[0]), titles, sources, question)


def _run(translator: Translator, source: Tensor, read: Tensor, answers: tuple[int, int]) -> Run:
    """Score a source by the logit of the second answer less that of the first."""
    first, second = answers

    def run(rows: int) -> Tensor:
        logits: Tensor = translator.model(source.expand(rows, -1), read.expand(rows, -1))
        return (logits[:, -1, second] - logits[:, -1, first]).float()

    return run


def _joined(translator: Translator, tokens: Sequence[int]) -> str:
    return label("".join(translator.tokenizers.source.piece(token) for token in tokens))
