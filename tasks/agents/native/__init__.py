"""The native runner: the rules of an agent session, exactly, with pydantic-ai for one model request at a time.

`session.py`, `turn.py` and `compacting.py` are the rules, a pure machine from (session, input) to (session, commands);
`live.py` carries the commands out. Nothing here is imported unless a native agent runs.
"""
