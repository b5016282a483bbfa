"""The page *Test a state*, and the export of an execution as a test.

``console.features.test_state`` runs the test itself, also for the API action TestState.
"""
