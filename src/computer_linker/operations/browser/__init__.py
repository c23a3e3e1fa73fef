"""Operations named browser.*."""
