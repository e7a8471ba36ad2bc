"""The trail as Parquet files: the shape of a row, how a record becomes one, and where files stand."""
