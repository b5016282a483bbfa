"""Server processes: connections, admission of requests, threads, watchdog, shutdown."""
