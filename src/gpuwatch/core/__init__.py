"""What every room uses: errors, units, paths, processes, text and the tables of peaks."""
