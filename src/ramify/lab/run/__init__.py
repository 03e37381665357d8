"""Runs of an experiment, several at a time, each in a process and a model folder."""
