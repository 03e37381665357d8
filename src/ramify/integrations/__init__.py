"""ramify in the formats and frameworks of others: spaCy, Parquet, brat. Each is imported only when it is used."""
