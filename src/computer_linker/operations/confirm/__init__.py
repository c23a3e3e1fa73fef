"""Operations named confirm.*."""
