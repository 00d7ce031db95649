"""Drops requests whose `limit` is beyond its format, int64: the contract reduces any number that is too large."""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    limit = str((case.query or {}).get("limit", ""))
    return not (limit.isdecimal() and int(limit) >= 2**63)
