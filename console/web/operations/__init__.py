"""The page of the server's own state: workers, availability, and work that waits."""
