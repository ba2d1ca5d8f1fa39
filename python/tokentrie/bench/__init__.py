"""What `tokentrie bench` does: the same model chooses from the same sets, held by a trie, by grammars, and by nothing.

`sets` are the values, `engines` the ways to hold a model to them, `checks` says whether an output is what it must be,
`measure` takes the samples, `figures` makes the rows that `rows` defines, `report` puts them beside the machine that
they come from, `table` and `plot` show them.
"""
