"""The page of a run that trains: index.html in its folder, one file without scripts."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from manyheads.doctor.curves import measured
from manyheads.doctor.finding import Finding, settings_text
from manyheads.files import write_text
from manyheads.fit.pace import duration
from manyheads.lens.labels import cut
from manyheads.lens.panels import number
from manyheads.lens.view.curve_svg import curve_svg
from manyheads.lens.view.plain_page import plain_page
from manyheads.train.history import History
from manyheads.train.training_task import Example, lower_is_better

PAGE = "index.html"
RELOAD = 30  # seconds, while the run goes on
TEXT = 400  # characters of an example that are shown


def write_page(
    folder: Path,
    history: History,
    findings: Sequence[Finding],
    examples: Sequence[Example],
    *,
    steps: int,
    left: float | None,
) -> None:
    """Write the page anew: what was logged, what the doctor finds, examples of the last validation.

    `steps` are those of the whole run, `left` the seconds to its end; None where it has ended.
    """
    name, done = folder.resolve().name, history.last_step
    state = "finished" if done >= steps else "stopped"
    if left is not None:
        state = f"about {duration(left)} left"
    spent = max((line.get("seconds", 0.0) for line in history.training), default=0.0)
    marks = [(float(each.step), each.kind) for each in findings if each.step is not None]
    losses = list(zip(history.steps.tolist(), history.losses.tolist(), strict=True))
    curves = [curve_svg("training loss", losses, last=steps, marks=marks)]
    for metric in measured(history):
        points = [(line["step"], line[metric]) for line in history.validations if metric in line]
        curves.append(curve_svg(metric, points, last=steps))
    body = [
        f"<p>Step {done:,} of {steps:,}, {state}; {duration(spent)} of training so far.</p>",
        f'<progress max="{steps}" value="{done}"></progress>',
        *curves,
        _scores(history),
        *_said(findings),
        _examples(examples),
        "<footer>Drawn anew at each validation. <code>manyheads doctor "
        f"{html.escape(str(folder))}</code> looks at weights and data as well.</footer>",
    ]
    reload = None if left is None else RELOAD
    write_text(folder / PAGE, plain_page(name, body, title=f"{name}: step {done:,}", reload=reload))


def _scores(history: History) -> str:
    rows = []
    for metric in measured(history):
        lines = [line for line in history.validations if metric in line]
        best = (min if lower_is_better(metric) else max)(lines, key=lambda line: line[metric])
        rows.append(
            f"<tr><td>{html.escape(metric)}</td><td>{number(lines[-1][metric])}</td>"
            f"<td>{number(best[metric])} at step {int(best['step']):,}</td></tr>"
        )
    if not rows:
        return "<p>No validation yet.</p>"
    head = "<tr><th>validation</th><th>last</th><th>best</th></tr>"
    return f"<h2>Scores</h2><table>{head}{''.join(rows)}</table>"


def _said(findings: Sequence[Finding]) -> Iterable[str]:
    yield "<h2>What the doctor says of the curves and of the beginning</h2>"
    if not findings:
        yield "<p>Nothing found.</p>"
    for each in findings:
        evidence = "".join(f"<li>{html.escape(line)}</li>" for line in each.evidence)
        tried = settings_text(each.settings)
        settings = f" Try: <code>{html.escape(tried)}</code>" if tried else ""
        yield (
            f'<section class="{each.severity}"><p><b>{each.severity}</b> {html.escape(each.what)}'
            f"</p><ul>{evidence}</ul><p>{html.escape(each.remedy)}{settings}</p></section>"
        )


def _examples(examples: Sequence[Example]) -> str:
    if not examples:
        return ""
    rows = []
    for each in examples:
        image = f'<img src="{each.image}" alt=""><br>' if each.image else ""
        source, output, truth = (html.escape(cut(text, TEXT)) for text in each[:3])
        look = ' class="right"' if each.output == each.truth else ""
        rows.append(f"<tr{look}><td>{image}{source}</td><td>{output}</td><td>{truth}</td></tr>")
    head = "<tr><th>input</th><th>output</th><th>truth</th></tr>"
    return (
        "<h2>Examples of the last validation</h2>"
        f'<table class="examples">{head}{"".join(rows)}</table>'
    )
