"""Real clusters of one machine: two kinds of workers, of which either can be killed in the middle."""
