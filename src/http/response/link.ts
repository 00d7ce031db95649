/** Link relations, in output order. */
const RELATIONS = ['first', 'prev', 'next', 'last'] as const;

type Relation = (typeof RELATIONS)[number];

/** Query parameters of a target, in output order. */
export type LinkParams = Record<string, string | number>;

/**
 * The `Link` header (RFC 8288); none without targets. Targets are relative references that consist of a query
 * string, so that they work behind a proxy that maps the path.
 */
export function linkHeader(
  targets: Partial<Record<Relation, LinkParams | undefined>>,
): Record<string, string> {
  const links = RELATIONS.flatMap((relation) => {
    const params = targets[relation];
    return params === undefined ? [] : [`<?${queryOf(params)}>; rel="${relation}"`];
  });
  return links.length === 0 ? {} : { Link: links.join(', ') };
}

function queryOf(params: LinkParams): string {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
}
