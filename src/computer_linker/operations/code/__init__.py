"""Operations on source code."""
