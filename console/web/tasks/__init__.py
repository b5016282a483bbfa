"""Pages of open tasks (approvals, callbacks, activities) and of activities."""
