"""The engine for more than one machine: Spark reads the topic, and answers the same questions in the same files.

Nothing outside imports pyspark; nothing here is imported unless this engine is asked for.
"""
