"""A resilient supervisor for distributed training jobs."""

__version__ = "0.1.0"
