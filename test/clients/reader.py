"""Reads pages with the generated client and prints them as JSON again. The argument is the address of the service."""

import json
import sys

from registry_client import ApiClient, Configuration, DefaultApi

api = DefaultApi(ApiClient(Configuration(host=sys.argv[1])))
pages = [
    api.browse(),
    api.browse(page=3_000_000_000),
    api.search(q="alpha"),
    api.search(q="alpha", sort="weight", limit=2),
    api.packages_name(name="alpha"),
    api.lookup(name=["alpha", "none"]),
    api.similar(name="alpah"),
    api.changes(),
    api.stats(),
    api.health(),
]
print(json.dumps([page.to_dict() for page in pages]))
