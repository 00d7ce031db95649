"""Drops requests whose limit is beyond its format, int64: the contract reduces any number that is too large."""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    limits = [str((case.query or {}).get(name, "")) for name in ("limit", "size", "from", "per_page")]
    return not any(limit.isdecimal() and int(limit) >= 2**63 for limit in limits)
