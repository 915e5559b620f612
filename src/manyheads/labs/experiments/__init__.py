"""One experiment per file: its sizes, its measurements, and its conclusion from the numbers."""
