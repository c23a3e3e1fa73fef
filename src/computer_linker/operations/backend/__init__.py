"""Operations named backend.*."""
