"""The formats before v2, and the drafts of v3. Each is imported when one of its documents is met."""
