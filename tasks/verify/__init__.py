"""Verify a zone: landed files are whole and continuous, and chains unbroken and bound to them (section 9).

`tasks.verify.work` is the same in a worker's process (`tasks.shards`).
"""

from tasks.verify.problems import Problem, SessionVerification
from tasks.verify.session import verifiable, verify_session

__all__ = ["Problem", "SessionVerification", "verifiable", "verify_session"]
