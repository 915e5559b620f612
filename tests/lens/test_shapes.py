import pytest
import torch
from torch import Tensor, nn

from manyheads.decode.greedy import greedy_search
from manyheads.lens.trace.module_shapes import ShapeLine, render_shapes, walk
from manyheads.models.vit import Vit
from tests.lens import examples


def hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_parts_come_in_the_order_in_which_they_are_entered() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    lines = walk(model, lambda: model(torch.ones(5, 3)))
    assert lines == [
        ShapeLine("", "Sequential", ((5, 3),), ((5, 2),), 26, 0),
        ShapeLine("0", "Linear", ((5, 3),), ((5, 4),), 16, 1),
        ShapeLine("1", "Sequential", ((5, 4),), ((5, 2),), 10, 1),
        ShapeLine("1.0", "ReLU", ((5, 4),), ((5, 4),), 0, 2),
        ShapeLine("1.1", "Linear", ((5, 4),), ((5, 2),), 10, 2),
    ]


def test_cross_attention_is_shown_although_it_is_no_call_of_a_module() -> None:
    model, source, target = examples.transformer()
    lines = walk(model, lambda: model(source, target))
    names = [line.name for line in lines]
    at = names.index("decoder layer 1 cross")
    attention = lines[at]
    assert attention.kind == "attention"
    assert attention.inputs == (
        (1, 2, 3, 4),
        (1, 2, 4, 4),
    )  # q: 3 target tokens, k: 4 of the source
    assert attention.outputs == ((1, 2, 3, 4),)
    assert attention.parameters == sum(
        p.numel() for p in model.decoder.blocks[0].cross.parameters()
    )
    # What post-norm does around it, in order; all of it directly inside the block.
    assert names[at - 1 : at + 4] == [
        "decoder.blocks.0.around_attention.norm",
        "decoder layer 1 cross",
        "decoder.blocks.0.cross.out",
        "decoder.blocks.0.around_cross.dropout",
        "decoder.blocks.0.around_cross.norm",
    ]
    block = lines[names.index("decoder.blocks.0")]
    assert {line.depth for line in lines[at - 1 : at + 4]} == {block.depth + 1}


def test_self_attention_stands_inside_its_module_between_its_projections() -> None:
    model, source, target = examples.transformer()
    names = [line.name for line in walk(model, lambda: model(source, target))]
    at = names.index("encoder.blocks.1.attention")
    assert names[at : at + 4] == [
        "encoder.blocks.1.attention",
        "encoder.blocks.1.attention.qkv",
        "encoder layer 2 self",
        "encoder.blocks.1.attention.out",
    ]


def test_parameters_of_a_decoder_block_are_those_of_the_lines_in_it() -> None:
    model, source, target = examples.transformer()
    lines = walk(model, lambda: model(source, target))
    names = [line.name for line in lines]
    at = names.index("decoder.blocks.0")
    # The parts that the block calls; those of the cross-attention, whose methods it calls, stand
    # in the line of the attention, which its output projection follows.
    inside = [
        line.parameters
        for line in lines[at + 1 : names.index("decoder.blocks.1")]
        if line.depth == lines[at].depth + 1 and line.name != "decoder.blocks.0.cross.out"
    ]
    assert sum(inside) == lines[at].parameters


def test_a_walk_through_decoding_shows_every_step() -> None:
    model, source, _ = examples.transformer()
    lines = walk(model, lambda: greedy_search(model, source, [2], start=1, end=99))
    crosses = [line for line in lines if line.name == "decoder layer 2 cross"]
    assert [line.inputs for line in crosses] == [((1, 2, 1, 4), (1, 2, 4, 4))] * 2
    own = [line.inputs[1] for line in lines if line.name == "decoder layer 1 self"]
    assert own == [(1, 2, 1, 4), (1, 2, 2, 4)]  # the keys grow


def test_shapes_are_found_in_keywords_and_nests() -> None:
    class Nest(nn.Module):
        def forward(
            self, x: dict[str, list[Tensor]], mask: Tensor, *, y: Tensor
        ) -> tuple[Tensor, None]:
            return (x["a"][0] + y) * mask, None

    model = Nest()
    mask = torch.ones(2, 3, dtype=torch.bool)  # says who may look, not what walks through
    (line,) = walk(model, lambda: model({"a": [torch.ones(2, 1)]}, mask, y=torch.ones(3)))
    assert line.inputs == ((2, 1), (3,))
    assert line.outputs == ((2, 3),)


def test_hooks_are_gone_afterwards_even_after_an_error() -> None:
    model = nn.Sequential(nn.Linear(3, 4))
    walk(model, lambda: model(torch.ones(1, 3)))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        walk(model, lambda: model(torch.ones(1, 5)))
    assert hooks(model) == 0


def test_walking_does_not_change_the_answer() -> None:
    model, source, target = examples.transformer()
    seen: list[Tensor] = []
    walk(model, lambda: seen.append(model(source, target)))
    assert torch.equal(seen[0], model(source, target))


def test_the_table_is_aligned_and_shows_what_runs_inside_what() -> None:
    model = Vit(examples.VIT)
    lines = render_shapes(walk(model, lambda: model(torch.ones(1, 1, 4, 6)))).splitlines()
    assert lines[0].split() == ["part", "class", "in", "out", "parameters"]
    assert lines[1].startswith("(model)  ")
    assert lines[2].startswith("  patches ")
    assert len({line.index(line.split()[1]) for line in lines[:3]}) == 1
    assert any("q 1 x 2 x 7 x 4, k 1 x 2 x 7 x 4" in line for line in lines)
