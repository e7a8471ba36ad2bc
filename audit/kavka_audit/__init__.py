"""The Kavka audit analytics: from the audit topic to who talked, who was denied and who was throttled."""
