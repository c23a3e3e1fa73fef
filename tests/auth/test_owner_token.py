"""The owner's token."""

from computer_linker.auth import owner_token


def test_each_token_is_new_and_fits_into_a_header() -> None:
    one, other = owner_token.new_token(), owner_token.new_token()
    assert one != other
    assert len(one) >= 43
    assert one.isascii() and " " not in one


def test_a_token_matches_itself_and_nothing_near_it() -> None:
    token = owner_token.new_token()
    assert owner_token.matches(token, token)
    for wrong in ("", token[:-1], token + "x", token.upper(), " " + token, token + "\n", "\udc80" + token):
        assert not owner_token.matches(token, wrong)


def test_what_is_kept_as_a_digest_opens_with_the_token_but_not_with_the_digest() -> None:
    token = owner_token.new_token()
    kept = owner_token.digest_of(token)
    assert owner_token.is_digest(kept)
    assert owner_token.matches(kept, token)
    assert not owner_token.matches(kept, kept)


def test_a_token_that_only_looks_like_a_digest_is_compared_as_it_is() -> None:
    odd = "sha256:not-a-digest"
    assert owner_token.matches(odd, odd)


def test_a_report_never_shows_the_token() -> None:
    token = owner_token.new_token()
    assert token not in owner_token.shown(token)
    assert owner_token.shown(None) == "none"
    assert owner_token.shown(owner_token.digest_of(token)) == "kept as a digest"
