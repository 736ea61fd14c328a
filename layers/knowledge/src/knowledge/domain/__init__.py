"""Frozen values and rules. Knows no client, no clock and no environment."""
