"""From posteriors to trees."""
