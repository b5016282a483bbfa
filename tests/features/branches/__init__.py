"""Tests of branches: projects that are copies of others for some days."""
