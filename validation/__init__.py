"""Claims of the papers, one page each, put to the test: statement, source, settings, figure, a control that fails.

`python -m validation` from a clone runs them all. A claim is a module of this folder with `CLAIM`, found by its name.
"""
