"""Programs that people run. The layer never imports them."""
