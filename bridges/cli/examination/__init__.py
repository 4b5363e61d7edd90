"""What ``harness-im doctor`` looks at. Nothing is changed, no model is called, and no secret is shown."""
