"""Whole generations: the same model chooses from the same sets, held by a trie, by grammars, and by nothing."""
