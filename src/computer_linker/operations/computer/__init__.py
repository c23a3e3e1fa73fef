"""Operations named computer.*."""
