"""Matching, relevance and assembly: pure functions over values, no client anywhere."""
