"""Data checks: issues, leakage, duplicates."""
