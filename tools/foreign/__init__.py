"""Foreign programs' own work under glibc and under libfreestone: whatever differs is a defect (``make foreign``)."""
