"""Verify a zone: landed files are whole and continuous, and chains unbroken and bound to them (section 9).

`tasks.verify.task` holds the same as a Prefect task; it is not imported here, so that this package starts without
Prefect.
"""

from tasks.verify.problems import Problem, SessionVerification
from tasks.verify.session import verifiable, verify_session

__all__ = ["Problem", "SessionVerification", "verifiable", "verify_session"]
