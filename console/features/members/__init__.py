"""Members: the page of a project's members and their roles, and invitations."""
