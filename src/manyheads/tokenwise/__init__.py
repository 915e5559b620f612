"""Models with one output per token: what generating, filling and tagging share."""
