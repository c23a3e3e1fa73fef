"""The history: append-only, chained, and free of what people would not want kept."""
