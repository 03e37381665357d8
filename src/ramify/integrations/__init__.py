"""Formats and frameworks of other projects: spaCy, Parquet, brat. Each is imported only when it is used."""
