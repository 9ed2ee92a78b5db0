"""The classic case: a program that frees its matrices in each call, before and after, beside what was published in 2001."""
