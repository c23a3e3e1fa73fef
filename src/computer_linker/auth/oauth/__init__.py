"""OAuth 2.1 for clients that cannot carry the owner's token: consent by the owner, narrow grants, tokens kept as digests."""
