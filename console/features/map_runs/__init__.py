"""The Map Run page: counts, child executions, and the settings of UpdateMapRun."""
