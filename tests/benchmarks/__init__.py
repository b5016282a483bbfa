"""What does it cost?  Commands that measure and print ratios, side by side in one run.

``python -m tests.benchmarks.map_cost`` and so on; none is part of the test-suite, as a machine's
mood must not decide whether a change lands.
"""
