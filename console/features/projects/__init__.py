"""Projects: an overview of one's own, and creating and renaming those of a server."""
