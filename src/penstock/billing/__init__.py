"""Billing: admission, leases on budgets and limits, the usage journal and reports."""
