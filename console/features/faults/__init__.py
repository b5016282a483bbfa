"""Faults: inject errors and latency into one execution, to test its error handling.

``engine.runtime.faults`` has the rules, ``console.store.executions.faults`` stores them.
"""
