"""Schema number of the JSON that commands print; ``docs/json.md`` lists the changes."""

JSON_SCHEMA = 2
