"""Parallel and monolingual text: formats, corpora, strict reading."""
