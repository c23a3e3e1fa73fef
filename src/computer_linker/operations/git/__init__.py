"""Operations on git repositories."""
