"""Foreign weights: (configuration, tensors) of another library -> our Config and state dict."""
