"""Requests and answers: plain values, the one place where a parameter of a request is written."""
