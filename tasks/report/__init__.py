"""Reports on a usage dataset: rows are condensed to sums, sums become values, and values a JSON document or a page.

What a row is and how calls are counted is decided where rows are written (`schemas.usage`); nothing here counts again.
`tasks.report.page` draws the page; it is not imported here, so that tables start without a charting library.
"""

from tasks.report.agents import AgentLine
from tasks.report.amounts import Amounts, Breakdown, CoverageLine, Line
from tasks.report.condense import COLUMNS, condense, merge
from tasks.report.json_form import json_of
from tasks.report.read import read_report
from tasks.report.scope import Scope, scope_of
from tasks.report.usage_report import CALL_TABLES, TABLES, UsageReport, report_of

__all__ = [
    "CALL_TABLES",
    "COLUMNS",
    "TABLES",
    "AgentLine",
    "Amounts",
    "Breakdown",
    "CoverageLine",
    "Line",
    "Scope",
    "UsageReport",
    "condense",
    "json_of",
    "merge",
    "read_report",
    "report_of",
    "scope_of",
]
