"""The tasks that wait for a person or a worker, and the activities that workers poll."""
