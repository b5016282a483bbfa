"""Settings and their shapes, the data folder, logging, quotas, checks and profiles of clients."""
