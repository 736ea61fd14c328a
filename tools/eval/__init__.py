"""Measures how well a knowledge base answers, beside plain vectors, BM25, their fusion and grep: `make eval`."""
