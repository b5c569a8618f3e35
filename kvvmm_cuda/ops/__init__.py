"""One file an operation, under the model's names: the same headings, on mutable records."""
