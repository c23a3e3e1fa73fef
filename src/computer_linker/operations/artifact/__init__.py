"""Operations named artifact.*."""
