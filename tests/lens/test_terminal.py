import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from manyheads.lens.plot.terminal_plot import render_map
from tests.lens import examples

LONG = [f"▁wort{n}" for n in range(20)]


def printed(renderable: object, width: int = 80, *, colour: bool = False) -> list[str]:
    console = Console(
        file=(out := io.StringIO()),
        width=width,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )
    console.print(renderable)
    return out.getvalue().splitlines()


def date_map(title: str = "") -> object:
    view = examples.date_view()
    return render_map(view.output, view.source, view.maps[-1].mean, title)


def test_a_log_shows_weights_as_blocks() -> None:
    weights = [[1.0, 0.0, 0.0], [0.0, 0.7, 0.3], [0.0, 0.5, 0.5]]
    assert printed(render_map(["년", "월일", "</s>"], ["▁Friday", "▁2026", "</s>"], weights)) == [
        "     Friday  2026   </s>  ",
        "  년 ██████    ·      ·   ",
        "월일    ·   ▓▓▓▓▓▓ ░░░░░░ ",
        "</s>    ·   ▒▒▒▒▒▒ ▒▒▒▒▒▒ ",
        "     · below 0.12   ░ 0.12   ▒ 0.38   ▓ 0.62   █ 0.88 to 1.00",
    ]


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [80, 120])
def test_twenty_source_tokens_fit_a_terminal_under_upright_labels(width: int, colour: bool) -> None:
    weights = [[1 / 20] * 20] * 2
    view = render_map(["▁금요일", "년"], LONG, weights)
    assert max(map(cell_len, printed(view, width))) <= width
    lines = printed(view, width, colour=colour)
    assert len(lines) == 6 + 2 + 1  # labels, rows, key
    assert "".join(line[8] for line in lines[:6]) == " wort0"
    assert "".join(line[8 + 19 * 3] for line in lines[:6]) == "wort19"


def test_hangul_columns_stand_exactly_over_their_cells() -> None:
    names = ["▁금요일", "▁11월"] + ["x" * 9] * 8  # nine lines of labels
    lines = printed(render_map(["a"], names, [[1.0, 0.0] + [0.0] * 8]))
    row = next(line for line in lines if "█" in line)
    assert [cell_len(line) for line in lines[:9]] == [cell_len(row)] * 9
    assert lines[8].startswith("  일 월  x ")
    assert row.startswith("a ██  ·  · ")


def test_a_map_too_wide_is_cut_into_bands_and_loses_nothing() -> None:
    weights = [[float(column == 99) for column in range(100)]]
    lines = printed(render_map(["a"], ["t"] * 100, weights), 80)
    assert max(map(cell_len, lines)) <= 80
    assert sum(line.count("t") for line in lines) - lines[-1].count("t") == 100
    assert sum(line.count("·") for line in lines[:-1]) == 99


def test_colour_shades_the_background_and_prints_percentages() -> None:
    text = "\n".join(printed(date_map(), colour=True))
    assert "\x1b[" in text
    assert "48;2;201;224;254" in text  # the peak
    assert "per cent" in text
    assert "█" not in text


def test_no_colour_means_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = "\n".join(printed(date_map(), colour=True))
    assert "█" in text
    assert "48;2" not in text


def test_the_title_stands_above() -> None:
    assert printed(date_map("decoder layer 3"))[0] == "decoder layer 3"


def test_a_token_cannot_send_codes_to_the_terminal() -> None:
    lines = printed(render_map(["\x1b[2J"], ["[red]"], [[1.0]]))
    assert "\x1b" not in "".join(lines)
    assert "[red]" in lines[0]


def test_long_labels_are_cut() -> None:
    lines = printed(render_map(["대한민국" * 5], ["Donaudampfschiff"], [[1.0]]))
    assert [line.strip() for line in lines[:10]] == list("Donaudamp⋮")
    assert lines[10].startswith(" 대한민국대한민… ██ ")
