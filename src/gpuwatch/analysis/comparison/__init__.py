"""Sessions and cells against each other: ratios, validity, verdicts and their wording."""
