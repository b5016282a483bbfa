"""Run jobs of AWS services and Kubernetes for ``.sync`` Tasks."""
