type Relation = 'first' | 'prev' | 'next' | 'last';

/** Query parameters of a target. */
type Params = Record<string, string | number>;

/**
 * The `Link` header (RFC 8288); none without targets. Targets are relative references that consist of a query string,
 * so that they work behind a proxy that maps the path. Targets and parameters are written in the given order.
 */
export function linkHeader(targets: Partial<Record<Relation, Params | undefined>>): Record<string, string> {
  const links = Object.entries(targets).flatMap(([relation, params]) => {
    if (params === undefined) return [];
    const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return [`<?${query.join('&')}>; rel="${relation}"`];
  });
  return links.length === 0 ? {} : { Link: links.join(', ') };
}
