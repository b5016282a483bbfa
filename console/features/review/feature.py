"""Declare the feature: the command ``review``, which compares state machines of two commits."""

from console.feature import Feature

FEATURE = Feature(
    name="review",
    needs=("metrics",),
)
