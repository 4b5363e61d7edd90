"""The sixth bridge: one entry, four channels that speak plain text. Each is one module over its platform's SDK."""
