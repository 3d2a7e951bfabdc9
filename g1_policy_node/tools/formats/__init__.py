"""The files other projects keep policies in: read into parts of a contract and weights."""
