import { readFileSync } from 'node:fs';

/** A query of a panel. */
export interface Target {
  refId: string;
  expr: string;
}

/** The part of a panel that tests read. Rows have no targets. */
export interface Panel {
  type: string;
  title: string;
  description?: string;
  fieldConfig?: { defaults: { unit?: string } };
  targets?: Target[];
}

interface Dashboard {
  uid: string;
  templating: { list: { name: string; type: string }[] };
  panels: Panel[];
}

/** Range of the queries in tests: longer than a test, so that every sample of the service counts. */
const RANGE = '10m';

/** deploy/grafana/registry-search.json. */
export const dashboard = JSON.parse(
  readFileSync(new URL('../../deploy/grafana/registry-search.json', import.meta.url), 'utf8'),
) as Dashboard;

/** All panels, without the rows. */
export const panels: readonly Panel[] = dashboard.panels.filter(({ type }) => type !== 'row');

/** The query that Grafana sends: with values in the place of its variables. */
export function interpolate(expr: string, registry: string): string {
  return expr
    .replaceAll('$__rate_interval', RANGE)
    .replaceAll('$__range', RANGE)
    .replaceAll('$registry', registry);
}
