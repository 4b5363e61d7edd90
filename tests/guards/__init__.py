"""What every test runs under: loopback only, a scrubbed environment, nothing left behind."""
