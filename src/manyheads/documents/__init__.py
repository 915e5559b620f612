"""Documents: divided into sentences, translated, and put together again."""
