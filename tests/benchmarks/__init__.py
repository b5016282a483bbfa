"""Benchmark commands that measure and print ratios, side by side in one run.

``python -m tests.benchmarks.map_cost`` and so on; none is part of the test suite, because the
load on a machine must not decide whether a change lands.
"""
