"""What a set, a rule, a chat template or a receipt holds: `tokentrie inspect`."""
