"""`tokentrie inspect`: the contents of a set, a rule, a chat template or a receipt."""
