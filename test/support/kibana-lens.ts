import { readFileSync } from 'node:fs';
import type { Client, estypes } from '@elastic/elasticsearch';

/** Reads Kibana's saved objects, and runs the searches of their Lens panels on Elasticsearch. */

const FILE = new URL('../../deploy/kibana/saved-objects.ndjson', import.meta.url);

interface Reference {
  type: string;
  id: string;
  name: string;
}

/** An exported object; the shape of the attributes depends on the type. */
export interface SavedObject {
  type: 'index-pattern' | 'lens' | 'dashboard';
  id: string;
  coreMigrationVersion: string;
  typeMigrationVersion: string;
  attributes: Record<string, any>; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on their shape
  references: Reference[];
}

/** A dimension of a panel. */
type Column = { isBucketed: boolean } & (
  | { operationType: 'count'; sourceField: '___records___' }
  | { operationType: 'max'; sourceField: string }
  | {
      operationType: 'terms';
      sourceField: string;
      params: { size: number; orderBy: { columnId: string }; orderDirection: 'desc'; otherBucket: boolean };
    }
  | {
      operationType: 'range';
      sourceField: string;
      params: { type: 'histogram'; maxBars: number; includeEmptyRows: boolean };
    }
  | { operationType: 'math'; params: { tinymathAst: Term } }
  | { operationType: 'formula'; references: [string] }
);

/** A part of a formula: a number, the value of a column, or a sum. */
type Term = number | string | { name: 'add'; args: Term[] };

export interface Layer {
  columns: Record<string, Column>;
  columnOrder: string[];
}

/** A line of a table or a point of a chart, by column; `Other` collects what has no bucket of its own. */
export type Row = Record<string, string | number>;

export function savedObjects(): SavedObject[] {
  return readFileSync(FILE, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as SavedObject);
}

export function layersOf(lens: SavedObject): Record<string, Layer> {
  return lens.attributes['state'].datasourceStates.formBased.layers as Record<string, Layer>;
}

/** The only layer of the panel whose id ends with `-PANEL`. */
export function layerOf(panel: string): Layer {
  const lens = savedObjects().find(({ type, id }) => type === 'lens' && id.endsWith(`-${panel}`));
  const [layer, ...others] = lens === undefined ? [] : Object.values(layersOf(lens));
  if (layer === undefined || others.length > 0) throw new Error(`panel ${panel} does not have one layer`);
  return layer;
}

/** The rows that a layer shows. @throws on an operation that is not implemented here. */
export async function rowsOf(client: Client, index: string, layer: Layer): Promise<Row[]> {
  const aggs: Record<string, estypes.AggregationsAggregationContainer> = {};
  for (const [id, column] of Object.entries(layer.columns)) {
    if (column.operationType === 'max') aggs[id] = { max: { field: column.sourceField } };
  }
  const [bucket, ...others] = layer.columnOrder.filter((id) => layer.columns[id]?.isBucketed);
  if (others.length > 0) throw new Error('layers with several buckets are not implemented');
  if (bucket === undefined) {
    const { hits, aggregations } = await client.search({ index, size: 0, track_total_hits: true, aggs });
    return [rowOf(layer, (hits.total as estypes.SearchTotalHits).value, aggregations ?? {})];
  }
  const buckets = await bucketing(client, index, layer, bucket);
  const { aggregations } = await client.search({ index, size: 0, aggs: { buckets: { ...buckets, aggs } } });
  const found = aggregations?.['buckets'] as unknown as Buckets;
  const rows = found.buckets.map((one) => ({ [bucket]: one.key, ...rowOf(layer, one.doc_count, one) }));
  const rest = found.sum_other_doc_count ?? 0;
  return rest > 0 && hasOther(layer.columns[bucket])
    ? [...rows, { [bucket]: 'Other', ...rowOf(layer, rest, {}) }]
    : rows;
}

interface Buckets {
  buckets: ({ key: string | number; doc_count: number } & Record<string, unknown>)[];
  sum_other_doc_count?: number;
}

function hasOther(column: Column | undefined): boolean {
  return column?.operationType === 'terms' && column.params.otherBucket;
}

async function bucketing(
  client: Client,
  index: string,
  { columns }: Layer,
  id: string,
): Promise<estypes.AggregationsAggregationContainer> {
  const column = columns[id];
  if (column?.operationType === 'terms') {
    const { size, orderBy, orderDirection } = column.params;
    if (columns[orderBy.columnId]?.operationType !== 'count')
      throw new Error('terms must be ordered by count');
    return { terms: { field: column.sourceField, size, order: { _count: orderDirection } } };
  }
  if (column?.operationType === 'range') {
    const field = column.sourceField;
    const bounds = { min: { min: { field } }, max: { max: { field } } };
    const { aggregations } = await client.search({ index, size: 0, aggs: bounds });
    const { min, max } = aggregations as unknown as Record<'min' | 'max', { value: number }>;
    const { maxBars, includeEmptyRows } = column.params;
    const interval = roundInterval((max.value - min.value) / maxBars);
    return { histogram: { field, interval, min_doc_count: includeEmptyRows ? 0 : 1 } };
  }
  throw new Error(`buckets are not implemented for ${String(column?.operationType)}`);
}

/** The smallest of 1, 2, 5, 10, 20 … that is at least `least`: Kibana's intervals of whole numbers. */
function roundInterval(least: number): number {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(least)));
  return power * ([1, 2, 5, 10].find((step) => power * step >= least) ?? 10);
}

function rowOf({ columns }: Layer, count: number, metrics: object): Row {
  const value = (term: Term): number => {
    if (typeof term === 'number') return term;
    if (typeof term === 'object') return term.args.map(value).reduce((sum, part) => sum + part);
    const column = columns[term];
    switch (column?.operationType) {
      case 'count':
        return count;
      case 'max':
        return (metrics as Record<string, { value: number }>)[term]?.value ?? NaN;
      case 'math':
        return value(column.params.tinymathAst);
      case 'formula':
        return value(column.references[0]);
      default:
        throw new Error(`no value is implemented for ${term}: ${String(column?.operationType)}`);
    }
  };
  const ids = Object.entries(columns).filter(([, { isBucketed }]) => !isBucketed);
  return Object.fromEntries(ids.map(([id]) => [id, value(id)]));
}
