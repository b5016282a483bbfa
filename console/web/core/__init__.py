"""What every page needs: the scope of a request, rights, addresses, formatting, errors.

This room knows no other room. All the others import from it.
"""
