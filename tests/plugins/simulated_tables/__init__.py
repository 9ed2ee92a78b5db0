"""Whole tables of made-up trials, to see how often the lab finds a difference that is there, and one that is not."""
