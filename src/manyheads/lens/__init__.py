"""Looking inside: a recorded trace and coordinates in; a view model, images and tables out."""
