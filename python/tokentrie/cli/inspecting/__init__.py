"""What a set or a rule holds: `tokentrie inspect`."""
