"""Assembly: landed records become rounds. `assemble_session` is the whole capability; the stages are modules of their
own.
"""

from .session import AssembleOptions, SessionAssembly, assemble_session

__all__ = ["AssembleOptions", "SessionAssembly", "assemble_session"]
