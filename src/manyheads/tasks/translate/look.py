"""What looking at a translation shows."""

from dataclasses import replace
from math import exp

import torch
from torch import Tensor

from manyheads.asks.look_request import LookRequest
from manyheads.generation.special_ids import special_ids
from manyheads.generation.text_decoding import Translation
from manyheads.lens.labels import labels
from manyheads.lens.measures.alignment_head import alignment_view
from manyheads.lens.measures.token_losses import loss_table
from manyheads.lens.trace.decoding_trace import decoded
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.text_view import Span, StepView, TextView, text_view
from manyheads.looking.figures import figures_of_text
from manyheads.looking.refusals import refuse_for_texts
from manyheads.looking.text_overlays import Reading, explained
from manyheads.looking.untrained import compared, untrained, watch
from manyheads.looking.word_comparison import compare_words
from manyheads.nn.recording.trace import Trace, record
from manyheads.predict.task_pipeline import Explanation
from manyheads.predict.text_reader import refuse_empty
from manyheads.tasks.translate.cause import cause_figures
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.reference import reference_figure, teacher_forcing
from manyheads.tasks.translate.word_alignment import reads_source


def explain_text(
    translator: Translator,
    text: str,
    *,
    integrated: bool | None = False,
    fresh: bool = False,
    prefix: str = "",
) -> tuple[str, TextView]:
    """Translate a text, then run the model once over text and translation with a recorder open.

    `integrated` is that of `explain_reading`; if `fresh`, the recorded model is untrained; the
    translation begins with `prefix`. Returns the translation and its view, whose notes begin with
    what is to be said of the translation.
    """
    raw, text = text, translator.read_source(text).text
    with record() as search:
        source, target, best = _translated(translator, text, prefix)
    read, wanted = target[:, :-1], target[:, 1:]
    seen, logits, _ = watch(translator, lambda each: each.model(source, read), fresh=fresh)
    log_chances = logits.float().log_softmax(dim=-1).gather(2, wanted[..., None])
    chances = log_chances.exp()[0, :, 0].tolist()
    sources, targets = translator.tokenizers
    start = targets.piece(special_ids(translator.model).start)
    given = translator.read_tokens(text)
    output_spans: list[Span | None] = [
        [token.begin, token.end] if token.begin < token.end else None
        for token in best.details or []
    ]
    output_spans.append(None)
    view = text_view(
        seen.trace,
        source=given.names,
        output=[targets.piece(token) for token in wanted[0].tolist()],
        probabilities=chances,
        start=start,
        source_spans=given.spans,
        output_spans=output_spans,
    )
    reading = Reading(
        seen.model,
        source,
        wanted[0].tolist(),
        lambda ids: seen.model(ids, read.expand(len(ids), -1)),
        view.source,
        view.output,
        given.spans,
        output_spans,
    )
    view = explained(view, reading, integrated=integrated)
    figures = figures_of_text(
        seen,
        names={"encoder": labels(view.source), "decoder": labels([start, *view.output[:-1]])},
        outputs=labels(view.output),
        gates=view.gates,
        pieces=(sources.piece, targets.piece),
    )
    view = compared(view, seen)
    remarks = [] if fresh else list(translator.notes(raw, best, searched=not prefix))
    costs = loss_table(
        view.output,
        chances,  # those of the view are rounded, and the loss of 0 is infinite
        title="How surprised the model was by each word",
        given="given the source and those before it",
    )
    aligned = (
        alignment_view(seen.trace, translator.alignment, len(best.tokens), len(view.source) - 1)
        if reads_source(translator.model) and not fresh
        else None
    )
    return best.text, replace(
        view,
        figures=[costs, *figures],
        alignment=aligned,
        notes=[*remarks, *view.notes],
        # An untrained model searched nothing.
        steps=[] if fresh else _steps(translator, search, best),
    )


def _steps(translator: Translator, search: Trace, best: Translation) -> list[StepView]:
    name = translator.tokenizers.target.piece
    tokens = [*best.tokens, *([special_ids(translator.model).end] if best.finished else [])]
    return [
        StepView(
            name(token),
            round(exp(log_probability), 6),
            [(name(each.token), round(each.probability, 6)) for each in candidates],
        )
        for token, log_probability, candidates in zip(
            tokens, best.token_log_probabilities, decoded(search, tokens).candidates, strict=True
        )
    ]


def _translated(
    translator: Translator, text: str, prefix: str = ""
) -> tuple[Tensor, Tensor, Translation]:
    refuse_empty(text)
    ((best, *_),) = translator.translate([text], prefixes=[prefix], details=True)
    return *teacher_forcing(translator, text, best.tokens), best


def look(predictor: Translator, request: LookRequest) -> Explanation:
    """Show where the translation comes from, and what the request asks for besides."""
    source = refuse_for_texts(predictor, request, translates=True, causes=True)
    text = predictor.read_source(source).text
    shown = untrained(predictor) if request.untrained else predictor
    told: dict[str, str] = {}
    figures = compare_words(shown, text, request)
    if request.instead is not None or request.why is not None:
        _, _, best = _translated(predictor, text, request.prefix)
        told, causes = cause_figures(shown, text, best, request)
        figures = [*causes, *figures]
    if request.reference is not None:
        figures.insert(0, reference_figure(shown, text, request.reference))
    output, view = explain_text(
        predictor,
        source,
        integrated=request.integrated,
        fresh=request.untrained,
        prefix=request.prefix,
    )
    told = {"text": text, "translation": output, **told}
    return Explanation(told, replace(view, figures=[*figures, *view.figures]))


def shapes(predictor: Translator, given: str) -> list[ShapeLine]:
    """Walk through a translation: encode once, then read the whole output under the mask."""
    refuse_for_texts(predictor, LookRequest(given=given))
    source, target, _ = _translated(predictor, given)
    with torch.inference_mode():
        return walk(predictor.model, lambda: predictor.model(source, target[:, :-1]))
