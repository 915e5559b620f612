"""One experiment a file: its sizes, what it measures, and how numbers become a sentence."""
