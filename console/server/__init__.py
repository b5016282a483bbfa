"""The processes that serve: connections, admission, watchdog, threads, shutdown."""
