"""Made-up files in the formats of the published data sets, for tests without the real ones."""
