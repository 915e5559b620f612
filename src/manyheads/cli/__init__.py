"""The command line: parse, call app, print. One file a verb; heavy imports inside the verbs."""
