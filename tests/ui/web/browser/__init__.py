"""A package, so that its tests can share one browser that closes behind the last of them."""
