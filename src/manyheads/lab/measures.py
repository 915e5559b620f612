"""What is measured inside models of pictures: reach, likeness of layers, and what they know."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from manyheads.nn.attention import AttentionRecord
from manyheads.nn.trace import record


def receptive_field(layers: int, kernel: int = 3) -> int:
    """Pixels of a row that one output of so many convolutions with stride 1 depends on."""
    return kernel + (kernel - 1) * (layers - 1)


def layers_needed(pixels: int, kernel: int = 3) -> int:
    """The least number of convolutions with stride 1 that see so many pixels."""
    layers = 1
    while receptive_field(layers, kernel) < pixels:
        layers += 1
    return layers


def seen(part: nn.Module, pictures: Tensor, place: int) -> int:
    """Pixels of a row that an output at `place` of the middle row really depends on.

    Counted where the gradient is not zero, from the first such pixel to the last.
    """
    given = pictures.clone().requires_grad_()
    found = part(given)
    found[:, :, found.shape[2] // 2, place].sum().backward()
    assert given.grad is not None
    touched = given.grad.abs().sum(dim=(0, 1, 2)).nonzero()
    return int(touched.max() - touched.min()) + 1


def patch_distances(grid: tuple[int, int], patch: int) -> Tensor:
    """Pixels between the middles of every two patches: (patch, patch)."""
    rows, columns = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    places = torch.stack((rows.flatten(), columns.flatten()), dim=1).double() * patch
    return torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist")


def attention_distance(weights: Tensor, grid: tuple[int, int], patch: int) -> Tensor:
    """Mean distance in pixels that each head looks, weighted by attention (ViT, figure 7).

    Args:
        weights: (image, head, query, key) over patches; tokens in front of these are left out.
        grid: rows and columns of patches.
        patch: side of one, in pixels.

    Returns:
        A number a head.
    """
    patches = grid[0] * grid[1]
    among = weights[:, :, -patches:, -patches:].double()
    among = among / among.sum(dim=-1, keepdim=True)
    return (among * patch_distances(grid, patch)).sum(dim=-1).mean(dim=(0, 2))


@torch.inference_mode()
def distances_by_layer(
    model: nn.Module, pictures: Tensor, grid: tuple[int, int], patch: int
) -> list[list[float]]:
    """The mean attention distance of each layer's heads."""
    model.eval()
    with record() as trace:
        model(pictures)
    return [
        attention_distance(each.whole.cpu(), grid, patch).tolist()
        for each in trace
        if isinstance(each, AttentionRecord) and each.site.stack == "encoder"
    ]


@torch.inference_mode()
def outputs(model: nn.Module, parts: Iterable[nn.Module], pictures: Tensor) -> list[Tensor]:
    """What each of some parts of a model answers, in the order of the parts."""
    found: dict[int, Tensor] = {}
    parts = list(parts)

    def keep(part: nn.Module, _given: object, answer: Tensor) -> None:
        found[id(part)] = answer.float().cpu()

    hooks = [part.register_forward_hook(keep) for part in parts]
    try:
        model.eval()
        model(pictures)
    finally:
        for hook in hooks:
            hook.remove()
    return [found[id(part)] for part in parts]


def pooled(x: Tensor) -> Tensor:
    """One vector a picture: the mean over tokens (picture token dim) or over a map's places."""
    return x.mean(dim=1) if x.ndim == 3 else x.mean(dim=(2, 3)) if x.ndim == 4 else x


def cka(x: Tensor, y: Tensor) -> float:
    """Linear centred kernel alignment of two layers' vectors (Kornblith et al. 2019, equation 4).

    1 if one is the other turned and scaled, 0 if they have nothing in common.

    Args:
        x: (picture, ...) of one layer.
        y: the same pictures in another layer, of any width.
    """
    grams = []
    for each in (x, y):
        flat = each.flatten(1).double()
        flat = flat - flat.mean(dim=0)
        grams.append(flat @ flat.T)
    a, b = grams
    return ((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-30)).item()


def likeness(layers: Sequence[Tensor]) -> list[list[float]]:
    """CKA of every two layers."""
    return [[cka(a, b) for b in layers] for a in layers]


def probe(
    known: Tensor, labels: Tensor, asked: Tensor, right: Tensor, *, ridge: float = 1e-2
) -> float:
    """Accuracy in percent of a linear classifier on frozen vectors, fitted by least squares.

    Args:
        known: (picture, dim) to fit on.
        labels: their classes.
        asked: (picture, dim) to measure on.
        right: their classes.
        ridge: what large coefficients cost, a picture.
    """
    mean, std = known.double().mean(dim=0), known.double().std(dim=0).clamp_min(1e-6)
    x, y = (
        torch.nn.functional.pad((each.double() - mean) / std, (0, 1), value=1.0)
        for each in (known, asked)
    )
    wanted = torch.nn.functional.one_hot(labels).double()
    eye = ridge * len(x) * torch.eye(x.shape[1], dtype=torch.float64)
    weights = torch.linalg.solve(x.T @ x + eye, x.T @ wanted)
    return 100 * ((y @ weights).argmax(dim=1) == right).double().mean().item()
