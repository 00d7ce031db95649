// Reads pages with the generated client and prints them as JSON again. The argument is the address of the service.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
)

func main() {
	configuration := NewConfiguration()
	configuration.Servers = ServerConfigurations{{URL: os.Args[1]}}
	api, ctx := NewAPIClient(configuration), context.Background()
	var alpha *Package = must(api.SearchAPI.GetPackage(ctx, "alpha").Execute())
	pages := []any{
		must(api.SnapshotAPI.BrowsePackages(ctx).Execute()),
		must(api.SnapshotAPI.BrowsePackages(ctx).Page(3_000_000_000).Execute()),
		must(api.SearchAPI.SearchPackages(ctx).Q("alpha").Execute()),
		must(api.SearchAPI.SearchPackages(ctx).Q("alpha").Sort(WEIGHT).Limit(2).Execute()),
		alpha,
		must(api.SearchAPI.LookUpPackages(ctx).Name([]string{"alpha", "none"}).Execute()),
		must(api.SearchAPI.FindSimilarPackages(ctx).Name("alpah").Execute()),
		must(api.SnapshotAPI.ListChanges(ctx).Execute()),
		must(api.ServiceAPI.GetStats(ctx).Execute()),
		must(api.ServiceAPI.GetHealth(ctx).Execute()),
	}
	if err := json.NewEncoder(os.Stdout).Encode(pages); err != nil {
		log.Fatal(err)
	}
}

func must[T any](page T, _ *http.Response, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return page
}
