"""Reads pages with the generated client and prints them as JSON again. The argument is the address of the service."""

import json
import sys

from registry_client import ApiClient, Configuration, SearchApi, ServiceApi, SnapshotApi
from registry_client.models import Package, SearchResult, SortOrder

client = ApiClient(Configuration(host=sys.argv[1]))
search, snapshot, service = SearchApi(client), SnapshotApi(client), ServiceApi(client)
pages = [
    snapshot.browse_packages(),
    snapshot.browse_packages(page=3_000_000_000),
    search.search_packages(q="alpha"),
    search.search_packages(q="alpha", sort=SortOrder.WEIGHT, limit=2),
    search.get_package(name="alpha"),
    search.look_up_packages(name=["alpha", "none"]),
    search.find_similar_packages(name="alpah"),
    snapshot.list_changes(),
    service.get_stats(),
    service.get_health(),
]
assert isinstance(pages[4], Package) and isinstance(pages[2].results[0], SearchResult)
print(json.dumps([page.to_dict() for page in pages]))
