"""The view model: plain data for the page, the PNG and the JSON."""
