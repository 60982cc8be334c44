"""Parts that several screens share: rows, graphs, keys, colours."""
