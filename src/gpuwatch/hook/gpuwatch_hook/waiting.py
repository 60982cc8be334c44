"""Adapters by the module that they wait for; written anew where the archive is made."""

ADAPTERS: dict[str, str] = {}
