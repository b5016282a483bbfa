"""Projects: an overview of one's own, and the life of those of a server."""
