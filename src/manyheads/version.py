"""The version of the package, also for parts that the package itself imports."""

__version__ = "0.1.0"
