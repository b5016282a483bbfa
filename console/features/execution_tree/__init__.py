"""The tree of an execution: its ancestors and descendants, with its redrives and replays."""
