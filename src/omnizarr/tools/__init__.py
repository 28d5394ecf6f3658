"""What is done to whole hierarchies: copying, counting."""
