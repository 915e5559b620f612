"""OpenVINO: image models in float32, bfloat16 and int8 on Intel's and other processors."""
