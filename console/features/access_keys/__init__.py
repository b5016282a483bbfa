"""Access keys: their limits, rotation and warnings before they expire; service accounts."""
