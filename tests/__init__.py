"""All tests. The tree mirrors the source; guards/ holds the rules every test runs under."""
