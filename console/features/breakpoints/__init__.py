"""Breakpoints: stop lines of control of an execution, inspect them, and continue them on a page.

``engine.runtime.breakpoints`` has the rules, ``console.store.executions.breakpoints`` stores them.
"""
