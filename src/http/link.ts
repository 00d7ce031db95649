/** The relations of the targets, in the order in which they are written. */
const RELATIONS = ['first', 'prev', 'next', 'last'] as const;

type Relation = (typeof RELATIONS)[number];

/** The parameters of a target in order. */
export type LinkParams = Record<string, string | number>;

/**
 * The header `Link` (RFC 8288) of a response, if it has targets. They are relative references with a query alone, so that
 * they hold behind every proxy, whatever path it maps.
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
