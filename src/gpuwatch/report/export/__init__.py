"""A session's or a study's data, whole, as CSV, JSON lines and Parquet."""
