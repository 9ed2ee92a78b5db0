"""What a block costs by its size: bars, a panel for each configuration."""
