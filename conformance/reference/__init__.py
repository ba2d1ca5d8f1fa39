"""The independent oracle: languages, what may come in them byte by byte, and cases drawn from a seed.

Nothing here imports an engine. What it says follows from the definition alone, by trying every way to read the text.
"""
