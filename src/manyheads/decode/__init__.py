"""Search: from a model that scores the next token to whole outputs."""
