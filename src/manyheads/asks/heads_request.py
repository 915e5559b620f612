"""Measuring what every head is worth."""

from typing import Annotated

from pydantic import Field

from manyheads.asks.evaluate_request import Data, Remote
from manyheads.asks.option import Option
from manyheads.asks.request import Request


class HeadsRequest(Request):
    """Take out one head after another, and then several, and measure the model each time."""

    data: Data = None
    remote: Remote = False
    split: Annotated[str, Option("Split of the recipe: train, valid.")] = "valid"
    limit: Annotated[int, Field(ge=2), Option("Most lines or images, evenly spaced.")] = 300
    samples: Annotated[int, Field(ge=100, le=100_000), Option("Number of bootstrap samples.")] = 200
