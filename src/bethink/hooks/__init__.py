"""Host integration: the hooks a host calls, and their installation."""
