"""Small defects that the tests must notice: `make mutants` makes them one at a time, in a copy of the package.

A file of `tables` lists the mutants of one room of the package. A survivor is a gap in the tests: add a test that fails
for it, or say in the table why no test can tell the difference.
"""
