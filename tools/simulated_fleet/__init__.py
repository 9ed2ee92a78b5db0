"""Made-up results of many machines of a few kinds, to see what a report of them takes."""
