"""Measures of cause: what follows in the answer when one thing inside the model is changed."""
