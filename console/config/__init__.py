"""Configuration: settings and their validation, data folder, logging, quotas, AWS profiles."""
