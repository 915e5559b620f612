"""The target "web": a folder that runs a model in a browser."""
