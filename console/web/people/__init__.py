"""The people of a project: login, invitations, passwords, members, access keys, audit trail."""
