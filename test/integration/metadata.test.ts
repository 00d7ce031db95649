import { expect } from 'chai';
import * as z from 'zod';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { newSlug, rebuildHere, startService, type Service } from '../support/service.js';

const count = z.int().nonnegative();

/** What Kibana and operators read. */
const DOCUMENTED = z.object({
  schema_version: z.literal(2),
  total: count,
  source: z.string(),
  taken_at: z.iso.datetime(),
  packages_digest: z.string(),
  dataset_validators: z.object({ origin: z.string(), etag: z.string(), lastModified: z.string() }),
  mapping_version: z.int(),
  has_package_no: z.boolean(),
  has_weights: z.boolean(),
  has_fields: z.array(z.string()),
  is_sample: z.boolean(),
  name_rule: z.string(),
  lineage: z.object({
    ancestors: z.array(z.string().regex(/^\d{8}t\d{6}z-[0-9a-f]{8}$/)).length(1),
    added: count,
    removed: count,
    updated: count,
  }),
});

describe('The _meta of an index', function () {
  this.timeout(120_000);
  let origin: DatasetServer;
  let service: Service;

  before(async () => {
    origin = await datasetServer((_request, response) => {
      const headers = { ETag: '"one"', 'Last-Modified': 'Wed, 01 Jul 2026 00:00:00 GMT' };
      response.writeHead(200, headers).end(toCsv(packagesNamed(['alpha', 'beta'])));
    });
    const slug = newSlug();
    // The second snapshot has an ancestor.
    for (let i = 0; i < 2; i++) await rebuildHere({ DATASET_URL: origin.url }, slug);
    service = await startService({ DATASET_URL: origin.url }, slug);
  });
  after(async () => {
    await service.end();
    await origin.close();
  });

  it('has every member with its documented type', async () => {
    const found = await service.elasticsearch.indices.getMapping({ index: service.alias });
    const meta = Object.values(found)[0]?.mappings._meta;
    expect(DOCUMENTED.safeParse(meta).error).to.equal(undefined);
  });
});
