"""Pages about people: login, invitations, passwords, members, access keys, audit trail."""
