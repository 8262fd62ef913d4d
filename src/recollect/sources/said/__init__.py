"""What somebody said in a session, told apart from what hosts and Recollect put there."""
