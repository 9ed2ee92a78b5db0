"""``make bill-of-materials``: what is in each package of dist, and under which licences."""
