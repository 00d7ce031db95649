package registry.client;

import java.util.List;
import registry.client.api.SearchApi;
import registry.client.api.ServiceApi;
import registry.client.api.SnapshotApi;
import registry.client.model.ModelPackage;
import registry.client.model.SortOrder;

/** Reads pages with the generated client and prints them as JSON again. The argument is the address of the service. */
public final class Reader {
  private Reader() {}

  public static void main(String[] args) throws ApiException {
    ApiClient client = new ApiClient().setBasePath(args[0]);
    SearchApi search = new SearchApi(client);
    SnapshotApi snapshot = new SnapshotApi(client);
    ServiceApi service = new ServiceApi(client);
    // The generator's name for a `Package`, which is a word of Java.
    ModelPackage alpha = search.getPackage("alpha", null);
    List<Object> pages =
        List.of(
            snapshot.browsePackages(null, null, null),
            snapshot.browsePackages(3_000_000_000L, null, null),
            search.searchPackages("alpha", null, null, null, null, null, null),
            search.searchPackages("alpha", 2L, SortOrder.WEIGHT, null, null, null, null),
            alpha,
            search.lookUpPackages(List.of("alpha", "none"), null),
            search.findSimilarPackages("alpah", null, null, null),
            snapshot.listChanges(null, null, null, null, null, null, null),
            service.getStats(),
            service.getHealth());
    System.out.println(JSON.getGson().toJson(pages));
  }
}
