"""What ``harness-im init`` does: asks, checks at the platforms, and writes everything at the end, or nothing."""
