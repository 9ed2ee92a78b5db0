"""Programs with one bug each, under every allocator: who stops which, and when. ``make misuses`` runs it."""
