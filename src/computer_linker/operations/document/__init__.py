"""Operations on documents: small changes that leave the rest of the file as it is."""
