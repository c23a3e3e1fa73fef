"""The composition root: starts the service, joins its parts, and answers the private socket."""
