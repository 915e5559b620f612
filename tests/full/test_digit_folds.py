"""The digits recipe holds up on data that it was not chosen on."""

import numpy as np
import pytest

from examples.digit_folds import FOLDS, accuracies


@pytest.mark.full
def test_mean_of_five_stratified_folds() -> None:
    """At least 98% of held-out digits are right, averaged over five folds."""
    found = accuracies()
    assert len(found) == FOLDS
    assert np.mean(found) >= 98.0, found
