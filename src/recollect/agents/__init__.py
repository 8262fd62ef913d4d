"""What an agent is given and what is kept of its sessions: briefing, prompt, capture."""
