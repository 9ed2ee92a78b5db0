"""Programs under allocators: run, judged, and told as tables. ``make hazards``, ``make misuses``, ``make foreign``."""
