"""Between the outside's events and the services' calls. Knows HTTP, SQS and Lambda; never an adapter."""
