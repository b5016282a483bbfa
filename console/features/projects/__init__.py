"""Projects: list one's projects; create, rename, archive and delete projects."""
