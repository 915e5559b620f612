"""The web shell: an HTTP API and a page over the predictors of `app`."""
