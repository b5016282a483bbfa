"""The data flow of a visit: the value after each field that changes it."""
