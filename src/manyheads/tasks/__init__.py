"""One folder a task; none imports another, and the registry finds them."""
