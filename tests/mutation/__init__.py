"""Mutation testing: `make mutants` introduces small defects, one at a time, which the tests must detect.

Each file of `tables` defines the mutants of one part of the package. If a mutant survives, the tests have a gap: add a
test that fails for it, or state in the table why it cannot change any result.
"""
