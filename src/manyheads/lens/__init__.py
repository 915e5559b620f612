"""Looking inside: a recorded trace and coordinates in; a view model, pictures and tables out."""
