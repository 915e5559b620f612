"""Heads of one pass: entropies by hand, and who is listed."""

import torch

from manyheads.lens.measures.head_figures import SHOWN, head_figures
from manyheads.lens.panels import Heat, Table
from manyheads.nn.recording.trace import LayerId, Trace
from tests.lens.examples import record_of

EVEN = [[0.25] * 4] * 4
SHARP = torch.eye(4).clamp_min(1e-9).tolist()


def watched(*layers: list[list[list[float]]]) -> Trace:
    records = [
        record_of(LayerId("encoder", number), torch.tensor(heads))
        for number, heads in enumerate(layers)
    ]
    return Trace([*records])


def test_entropies_and_idle_heads() -> None:
    """1 looks at all alike, 0 at one token; layers with fewer heads leave room."""
    trace = watched([EVEN, SHARP], [SHARP])
    heat, table = head_figures(torch.nn.Identity(), trace)
    assert isinstance(heat.panel, Heat)
    assert heat.panel.rows == ["encoder layer 1 self", "encoder layer 2 self"]
    assert heat.panel.columns == ["1", "2"]
    assert heat.panel.values == [[1.0, 0.0], [0.0, None]]
    assert "1 of 3 heads is idle and no pairs alike" in heat.legend
    assert isinstance(table.panel, Table)
    assert table.panel.rows == [
        ["encoder layer 1 self, head 1", "uniform, 100.0% of the largest entropy"]
    ]


def test_twins() -> None:
    """Two heads with one map; heads that idle are alike anyway and not told twice."""
    trace = watched([SHARP, SHARP, EVEN, EVEN])
    _, table = head_figures(torch.nn.Identity(), trace)
    assert isinstance(table.panel, Table)
    assert [row[0] for row in table.panel.rows] == [
        "encoder layer 1 self, head 3",
        "encoder layer 1 self, head 4",
        "encoder layer 1 self, heads 1 and 2",
    ]


def test_nothing_to_complain_of_and_too_much() -> None:
    """No table; or one that is cut, and says so."""
    trace = watched([SHARP])
    assert len(head_figures(torch.nn.Identity(), trace)) == 1
    trace = watched([EVEN] * (SHOWN + 5))
    _, table = head_figures(torch.nn.Identity(), trace)
    assert isinstance(table.panel, Table)
    assert len(table.panel.rows) == SHOWN
    assert "5 more are left out" in table.legend
    assert head_figures(torch.nn.Identity(), Trace([])) == []
