"""Export of all data of a session or study as CSV, JSON lines and Parquet."""
