"""One technology each behind the ports. Knows nothing of the services that use it and of the events that start them."""
