"""What several screens draw with: rows, graphs, keys, colours."""
