"""The commands, one module each: ``SUMMARY``, ``add_arguments(parser)``, ``run_command(options)``.

``run_command`` returns the exit code.
"""
