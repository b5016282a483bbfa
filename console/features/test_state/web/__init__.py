"""The page that tests one state, and the export of an execution as a test.

The test itself, which the API action TestState shares, is ``console.features.test_state``.
"""
