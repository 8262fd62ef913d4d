"""Storage adapters and the text analysis, ranking and signatures they share."""
