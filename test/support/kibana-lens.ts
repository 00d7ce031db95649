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

/** A dimension of a panel; operations do without the members that they do not need. */
interface Column {
  isBucketed: boolean;
  operationType: 'count' | 'max' | 'terms' | 'range' | 'math' | 'formula';
  sourceField: string;
  references: string[];
  params: {
    /** Of terms. */
    size: number;
    orderBy: { columnId: string };
    orderDirection: 'desc';
    otherBucket: boolean;
    /** Of a range. */
    maxBars: number;
    includeEmptyRows: boolean;
    /** Of a formula. */
    tinymathAst: Term;
  };
}

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
  const { columns, columnOrder } = layer;
  const maxima = Object.entries(columns).filter(([, { operationType }]) => operationType === 'max');
  const aggs = Object.fromEntries(maxima.map(([id, { sourceField: field }]) => [id, { max: { field } }]));
  const [bucket, ...others] = columnOrder.filter((id) => columns[id]?.isBucketed);
  if (others.length > 0) throw new Error('layers with several buckets are not implemented');
  if (bucket === undefined) {
    const { hits, aggregations } = await client.search({ index, size: 0, track_total_hits: true, aggs });
    return [rowOf(layer, (hits.total as estypes.SearchTotalHits).value, aggregations ?? {})];
  }
  const column = columns[bucket] as Column;
  const buckets = await bucketing(client, index, layer, column);
  const { aggregations } = await client.search({ index, size: 0, aggs: { buckets: { ...buckets, aggs } } });
  const { buckets: found, sum_other_doc_count: rest = 0 } = aggregations?.['buckets'] as unknown as Buckets;
  const rows = found.map((one) => ({ [bucket]: one.key, ...rowOf(layer, one.doc_count, one) }));
  const hasOther = column.operationType === 'terms' && column.params.otherBucket && rest > 0;
  return hasOther ? [...rows, { [bucket]: 'Other', ...rowOf(layer, rest, {}) }] : rows;
}

interface Buckets {
  buckets: ({ key: string | number; doc_count: number } & Record<string, unknown>)[];
  sum_other_doc_count?: number;
}

async function bucketing(
  client: Client,
  index: string,
  { columns }: Layer,
  { operationType, sourceField: field, params }: Column,
): Promise<estypes.AggregationsAggregationContainer> {
  if (operationType === 'terms') {
    const { size, orderBy, orderDirection } = params;
    const order = columns[orderBy.columnId]?.operationType;
    if (order !== 'count') throw new Error('terms must be ordered by count');
    return { terms: { field, size, order: { _count: orderDirection } } };
  }
  if (operationType !== 'range') throw new Error(`buckets are not implemented for ${operationType}`);
  const bounds = { min: { min: { field } }, max: { max: { field } } };
  const { aggregations } = await client.search({ index, size: 0, aggs: bounds });
  const { min, max } = aggregations as unknown as Record<'min' | 'max', { value: number }>;
  const interval = roundInterval((max.value - min.value) / params.maxBars);
  return { histogram: { field, interval, min_doc_count: params.includeEmptyRows ? 0 : 1 } };
}

/** The smallest of 1, 2, 5, 10, 20 … that is at least `least`: Kibana's intervals of whole numbers. */
function roundInterval(least: number): number {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(least)));
  return power * ([1, 2, 5, 10].find((step) => power * step >= least) ?? 10);
}

function rowOf({ columns }: Layer, count: number, metrics: object): Row {
  const values: Partial<Record<Column['operationType'], (column: Column, id: string) => number>> = {
    count: () => count,
    max: (_column, id) => (metrics as Record<string, { value: number }>)[id]?.value ?? NaN,
    math: ({ params }) => value(params.tinymathAst),
    formula: ({ references: [term = ''] }) => value(term),
  };
  const value = (term: Term): number => {
    if (typeof term === 'number') return term;
    if (typeof term === 'object') return term.args.map(value).reduce((sum, part) => sum + part);
    const column = columns[term] as Column;
    const of = values[column.operationType];
    if (of === undefined) throw new Error(`no value is implemented for ${term}: ${column.operationType}`);
    return of(column, term);
  };
  const ids = Object.keys(columns).filter((id) => columns[id]?.isBucketed === false);
  return Object.fromEntries(ids.map((id) => [id, value(id)]));
}
