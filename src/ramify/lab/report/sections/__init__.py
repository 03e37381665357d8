"""What the report tells, one file a subject: each makes its tables and figures from the runs, or nothing."""
