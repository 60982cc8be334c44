"""Schema number of the JSON that commands print."""

JSON_SCHEMA = 2
