"""Usage: every provider call of a zone in Parquet, counted once, priced at its own time (usage specification)."""

from tasks.usage.count import count_usage
from tasks.usage.outcome import UsageOptions, UsageOutcome, UsageProblem
from tasks.usage.price_table import PriceTable, load_price_table, shipped_price_table
from tasks.usage.rates import RateCard

__all__ = [
    "PriceTable",
    "RateCard",
    "UsageOptions",
    "UsageOutcome",
    "UsageProblem",
    "count_usage",
    "load_price_table",
    "shipped_price_table",
]
