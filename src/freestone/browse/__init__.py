"""All results below a folder: what is told of each, and a local page over them."""
