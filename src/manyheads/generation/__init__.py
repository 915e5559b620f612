"""What models write: search in batches, tokens with probabilities, signs of bad output."""
