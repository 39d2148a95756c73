"""Headless agent runs: one declared agent, run unattended, bounded, judged by evidence and archived."""
