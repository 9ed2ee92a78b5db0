"""The classic case: a program that frees its matrices in each call, before and after, beside figures of 2001."""
