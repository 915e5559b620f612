"""ONNX: graphs for any runtime, and ONNX Runtime as an engine."""
