"""Tables, figures and one page from the saved results of an experiment; needs neither torch nor a model."""

from ramify.lab.report.write_report import Report, make_report

__all__ = ["Report", "make_report"]
