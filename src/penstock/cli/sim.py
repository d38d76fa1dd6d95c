"""`penstock sim`: orders that the simulated vendors have received."""

from contextlib import closing

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, print_json, print_table
from penstock.cli.store_access import load_settings


def sim(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Count the orders that each simulated vendor has accepted. Duplicates should be 0."""
    from penstock.gateway import build_offers
    from penstock.simulator.upstream import Simulator

    with expected_errors():
        vendors = build_offers(load_settings(data, config), None).vendors
        counts: dict[str, dict[str, int]] = {}
        for name, vendor in vendors.items():
            if isinstance(vendor.upstream, Simulator):
                with closing(vendor.upstream) as simulator:
                    counts[name] = simulator.counts()
    if as_json:
        print_json(counts)
        return
    columns = ("orders", "jobs", "duplicates")
    rows = [(name, *(str(found[column]) for column in columns)) for name, found in counts.items()]
    print_table(("vendor", *columns), rows)
