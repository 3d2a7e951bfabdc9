"""What the command line runs: walking, measuring, reporting, bundles."""
