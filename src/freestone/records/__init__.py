"""The documented schema of everything the lab writes down, and the files it lives in."""
