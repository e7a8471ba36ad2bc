"""What tests share: brokers as processes, raw connections, client programs."""
