"""Opening, focusing and closing applications."""
