"""Reproduce an imported execution: run it here with its recorded answers up to the failure."""
