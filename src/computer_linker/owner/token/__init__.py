"""Show or replace the owner's token for HTTP clients."""
