package registry.client;

import java.util.List;
import registry.client.api.DefaultApi;

/** Reads pages with the generated client and prints them as JSON again. The argument is the address of the service. */
public final class Reader {
  private Reader() {}

  public static void main(String[] args) throws ApiException {
    DefaultApi api = new DefaultApi(new ApiClient().setBasePath(args[0]));
    List<Object> pages =
        List.of(
            api.browse(null, null, null),
            api.browse(3_000_000_000L, null, null),
            api.search("alpha", null, null, null, null),
            api.search("alpha", 2L, "weight", null, null),
            api.packagesName("alpha", null),
            api.lookup(List.of("alpha", "none"), null),
            api.similar("alpah", null, null, null),
            api.changes(null, null, null, null),
            api.stats(),
            api.health());
    System.out.println(JSON.getGson().toJson(pages));
  }
}
