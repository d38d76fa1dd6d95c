"""The cast: pictures of some 1,500 things, found by their names in many languages.

- `wordbook` finds the symbol that a word means, and the name of a symbol, in any of its languages.
- `album` has the pictures of the symbols, and the kind of each.
"""
