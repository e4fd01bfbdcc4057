"""The job orchestration contract from the command line: ``python -m job_orchestration.cli``."""
