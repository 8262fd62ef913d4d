"""An example plug-in for Bethink: a retriever and an embedder."""
