"""Breakpoints: lines of control that stop, and the page on which a person lets them continue."""
