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
	api, ctx := NewAPIClient(configuration).DefaultAPI, context.Background()
	pages := []any{
		must(api.Browse(ctx).Execute()),
		must(api.Browse(ctx).Page(3_000_000_000).Execute()),
		must(api.Search(ctx).Q("alpha").Execute()),
		must(api.Search(ctx).Q("alpha").Sort("weight").Limit(2).Execute()),
		must(api.PackagesName(ctx, "alpha").Execute()),
		must(api.Lookup(ctx).Name([]string{"alpha", "none"}).Execute()),
		must(api.Similar(ctx).Name("alpah").Execute()),
		must(api.Changes(ctx).Execute()),
		must(api.Stats(ctx).Execute()),
		must(api.Health(ctx).Execute()),
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
