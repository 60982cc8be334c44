"""The schema of the JSON that commands print; ``docs/json.md`` lists what each number changed."""

JSON_SCHEMA = 2
