"""Operations named batch.*."""
