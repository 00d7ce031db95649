type Relation = 'first' | 'prev' | 'next' | 'last';

/** Query parameters of a target. */
type Params = Record<string, string | number>;

/**
 * The `Link` header (RFC 8288); an empty object without targets. Each target is a relative reference with only a query
 * string, which also works behind a proxy that changes the path. Targets and parameters are written in the given order.
 */
export function linkHeader(targets: Partial<Record<Relation, Params | undefined>>): Record<string, string> {
  const links = Object.entries(targets).flatMap(([relation, params]) => {
    if (params === undefined) return [];
    const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return [`<?${query.join('&')}>; rel="${relation}"`];
  });
  return links.length === 0 ? {} : { Link: links.join(', ') };
}
