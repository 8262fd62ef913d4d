"""Agent integration: briefing, prompt context, and capture of sessions."""
