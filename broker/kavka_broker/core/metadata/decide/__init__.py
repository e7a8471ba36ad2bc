"""What may be changed: functions that read an image and return a Decision, records and an answer."""
