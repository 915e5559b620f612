"""From files that somebody has to a data folder and a recipe: `manyheads init`."""
