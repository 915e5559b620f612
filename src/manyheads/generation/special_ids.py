"""The special token ids of translation models."""

from typing import Protocol, cast

from torch import nn


class SpecialIds(Protocol):
    """The special token ids in the config of every translation model."""

    @property
    def pad(self) -> int: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


def special_ids(model: nn.Module) -> SpecialIds:
    """Return the special token ids of a model."""
    return cast(SpecialIds, model.config)
