"""Pages of metrics: charts, and the Prometheus endpoint."""
