"""What can be configured: definitions by Kafka's own names, and typed values made from them."""
