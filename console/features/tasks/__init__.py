"""Tasks: pages of open tasks, which people answer in place of a worker, and of activities."""
