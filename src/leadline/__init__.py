"""Leadline: put documents in, get cited answers out."""
