"""The measuring instrument: real memories in, real questions asked, numbers with intervals out.

A surface like the command line: it uses the facade and nothing uses it.
"""
