import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';
import { z } from 'zod';
import { datasetFault, kibanaFault, nodesFault, redisFault, templateFault } from './urls.js';
import { PROJECT_FOLDER } from '../project-folder.js';
import { trimWhiteSpace } from '../unicode.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** An environment variable is missing or malformed; the message is for the operator. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The bundled snapshot: the binary packages of Debian bookworm. */
const BUNDLED_DATASET = new URL('data/debian-bookworm.csv.gz', PROJECT_FOLDER).href;

/**
 * Default limit of client connections. One that is not read takes up to 80 KB of requests and four responses,
 * an idle one 10 KB. A thousand fit into a container of 512 MB and the usual open-file limits.
 */
const DEFAULT_MAX_CONNECTIONS = 1000;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** A whole number written in plain decimal digits, within [min, max]. */
function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, message)
    .transform(Number)
    .refine((n) => Number.isSafeInteger(n) && n >= min && n <= max, message);
}

/** A text that `faultOf` accepts: it returns what an invalid text must be, or undefined. */
function faultless(faultOf: (text: string) => string | undefined) {
  return z.string().superRefine((text, context) => {
    const message = faultOf(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

/** An API key, which is sent as a header value. */
const apiKey = z.string().regex(/^[\x21-\x7e]+$/, 'must be one line of ASCII characters without spaces');

/** Maximum secret length in UTF-16 code units. Even at nine encoded bytes each, it fits a request head. */
const MAX_SECRET_LENGTH = 1024;

/** At least eight characters, which do not begin like those of the example files, which everybody knows. */
const OWN_SECRET = /^(?!change[-_ ]?me).{8}/isu;

/**
 * A secret that clients send in a query string. A line end usually comes from a file or a manifest; U+FFFD
 * stands for bytes that are not UTF-8.
 */
const secret = z
  .string()
  .refine(
    (text) =>
      text.length <= MAX_SECRET_LENGTH && !/[\p{Cc}\uFFFD]/u.test(text) && trimWhiteSpace(text) === text,
    `must be at most ${MAX_SECRET_LENGTH} characters of UTF-8, without control characters, and without white space at its ends`,
  )
  .regex(
    OWN_SECRET,
    'must be a secret of your own of at least 8 characters, not beginning with change-me: openssl rand -hex 32 makes one',
  );

/** The registry of the bundled sample. */
export const DEFAULT_SLUG = 'registry';

/** Letters, digits, `-` and `_`, in parts separated by dots. */
const HOST_NAME = /^(?=.{1,253}$)[a-z\d_]([a-z\d_-]*[a-z\d_])?(\.[a-z\d_]([a-z\d_-]*[a-z\d_])?)*$/i;

const REPLICAS_MUST = 'must be a number such as 1 or a range such as 0-1 or 0-all';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

/** Names that Elasticsearch's built-in templates reserve for data streams; no index can have them. */
const OF_DATA_STREAMS = /^(logs|metrics|profiling|synthetics)(-|$)/;

const slug = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'must be 1 to 40 of a-z, 0-9, _ and -, beginning with a letter')
  .refine(
    (text) => !OF_DATA_STREAMS.test(text),
    'must not be logs, metrics, profiling or synthetics, nor begin with one of these and a hyphen',
  )
  .default(DEFAULT_SLUG);

const variables = z.object({
  PORT: wholeNumber(0, 65535).default(3000),
  HOST: z
    .string()
    .refine(
      (text) => isIP(text) !== 0 || HOST_NAME.test(text),
      'must be an IP address, such as 0.0.0.0 or ::1, or a host name',
    )
    .default('127.0.0.1'),
  ELASTICSEARCH_URL: list.superRefine((nodes, context) => {
    const message = nodesFault(nodes);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  }),
  ELASTICSEARCH_API_KEY: apiKey.optional(),
  ELASTICSEARCH_REBUILD_API_KEY: apiKey.optional(),
  REDIS_URL: faultless(redisFault).optional(),
  DATASET_URL: faultless(datasetFault).optional(),
  REGISTRY_SLUG: slug,
  REGISTRY_SOURCE: z
    .string()
    .regex(/^[^\p{Cc}\u2028\u2029]+$/u, 'must be one line without control characters')
    .optional(),
  PACKAGE_URL_TEMPLATE: faultless(templateFault).optional(),
  REBUILD_SECRET: secret.optional(),
  BYPASS_SECRET: secret.optional(),
  TRUSTED_PROXIES: list
    .refine(areAddresses, 'must be IP addresses and CIDR ranges, comma separated, such as 10.0.0.0/8,::1')
    .default([]),
  INDEX_SHARDS: wholeNumber(1, 1024).default(1),
  INDEX_REPLICAS: z
    .string()
    .regex(/^\d{1,3}(-(\d{1,3}|all))?$/, REPLICAS_MUST)
    .refine((text) => {
      const [min, max = min] = text.split('-');
      return max === 'all' || Number(min) <= Number(max);
    }, REPLICAS_MUST)
    .default('0-1'),
  RATE_LIMIT_POINTS: wholeNumber(0, 1_000_000_000).default(120),
  RATE_LIMIT_WINDOW_SECONDS: wholeNumber(1, 86_400).default(60),
  MAX_CONNECTIONS: wholeNumber(1, 1_000_000).default(DEFAULT_MAX_CONNECTIONS),
  CACHE_MAX_BYTES: wholeNumber(0, 2 ** 40).default(64 * 2 ** 20),
  REBUILD_INTERVAL_SECONDS: wholeNumber(0, 2_000_000).default(0),
  REBUILD_MAX_SHRINK_PERCENT: wholeNumber(0, 100).default(10),
  CHANGES_RETENTION: wholeNumber(0, 100).default(30),
  DATASET_MAX_BAD_ROWS: wholeNumber(0, 1_000_000).default(0),
  DATASET_DOWNLOAD_TIMEOUT_SECONDS: wholeNumber(1, 86_400).default(3600),
  METRICS_PORT: wholeNumber(0, 65535).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

/** The names of all variables of the service. */
export const VARIABLES = Object.keys(variables.shape);

const kibanaVariables = z.object({
  KIBANA_URL: faultless(kibanaFault).default('http://127.0.0.1:5601'),
  KIBANA_API_KEY: apiKey.optional(),
  REGISTRY_SLUG: slug,
});

function deepFreeze<T extends object>(value: T): Readonly<T> {
  for (const part of Object.values(value))
    if (typeof part === 'object' && part !== null) deepFreeze(part as object);
  return Object.freeze(value);
}

function areAddresses(items: string[]): boolean {
  try {
    proxyAddr.compile(items);
    return items.length > 0 && items.every(isAddress);
  } catch {
    return false;
  }
}

/** Length of the prefix of an IPv4-mapped IPv6 address (`::ffff:10.0.0.0`). */
const MAPPED_PREFIX_BITS = 96;

/**
 * Whether `proxy-addr` trusts exactly the address or range that is written. It ignores a zone, and reads
 * `::ffff:10.0.0.0/8` as a range of IPv6 addresses that is not 10.0.0.0/8.
 */
function isAddress(item: string): boolean {
  const [address = '', bits] = item.split('/');
  if (isIP(address) === 0 || address.includes('%')) return false;
  const parsed = ipaddr.parse(address);
  const isMapped = parsed.kind() === 'ipv6' && (parsed as ipaddr.IPv6).isIPv4MappedAddress();
  return !isMapped || bits === undefined || Number(bits) > MAPPED_PREFIX_BITS;
}

/** The variables that are not empty: an empty one counts as absent. */
export function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

/** Example values of required variables, for error messages. */
const EXAMPLES: Environment = { ELASTICSEARCH_URL: 'http://127.0.0.1:9200' };

/** Parses the environment by a schema. @throws {ConfigError} */
function read<T>(schema: z.ZodType<T>, env: Environment): T {
  const given = withoutEmpty(env);
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const name = issue?.path.map(String).join('.') ?? 'environment';
  const example = EXAMPLES[name] === undefined ? '' : `, such as ${EXAMPLES[name]}`;
  const missing = given[name] === undefined;
  throw new ConfigError(
    missing ? `${name} is required${example}` : `${name} ${issue?.message ?? 'is malformed'}`,
  );
}

/** The whole configuration, validated and frozen. Names include the units. */
export type Config = ReturnType<typeof readConfig>;

/**
 * Reads the environment into one typed, frozen object. An empty variable counts as absent.
 * @throws {ConfigError} that names the first variable that is missing or malformed, and what it must be.
 */
export function readConfig(env: Environment) {
  const value = read(variables, env);
  return deepFreeze({
    port: value.PORT,
    host: value.HOST,
    elasticsearch: {
      nodes: value.ELASTICSEARCH_URL,
      apiKey: value.ELASTICSEARCH_API_KEY,
      rebuildApiKey: value.ELASTICSEARCH_REBUILD_API_KEY ?? value.ELASTICSEARCH_API_KEY,
    },
    redisUrl: value.REDIS_URL,
    registry: { slug: value.REGISTRY_SLUG, source: value.REGISTRY_SOURCE },
    dataset: {
      url: value.DATASET_URL ?? BUNDLED_DATASET,
      /** Whether it is the bundled one, which no other registry may serve. */
      isSample: value.DATASET_URL === undefined,
      packageUrlTemplate: value.PACKAGE_URL_TEMPLATE,
      maxBadRows: value.DATASET_MAX_BAD_ROWS,
      downloadTimeoutSeconds: value.DATASET_DOWNLOAD_TIMEOUT_SECONDS,
    },
    index: { shards: value.INDEX_SHARDS, replicas: value.INDEX_REPLICAS },
    rebuild: {
      secret: value.REBUILD_SECRET,
      intervalSeconds: value.REBUILD_INTERVAL_SECONDS,
      maxShrinkPercent: value.REBUILD_MAX_SHRINK_PERCENT,
    },
    changesRetention: value.CHANGES_RETENTION,
    bypassSecret: value.BYPASS_SECRET,
    trustedProxies: value.TRUSTED_PROXIES,
    rateLimit: { points: value.RATE_LIMIT_POINTS, windowSeconds: value.RATE_LIMIT_WINDOW_SECONDS },
    maxConnections: value.MAX_CONNECTIONS,
    cacheMaxBytes: value.CACHE_MAX_BYTES,
    metricsPort: value.METRICS_PORT,
    logLevel: value.LOG_LEVEL,
  });
}

const administrator = z.object({
  // HTTP's basic authentication separates user and password by the first colon.
  ELASTICSEARCH_ADMIN_USER: z.string().regex(/^[^:]+$/, 'must have no colon'),
  ELASTICSEARCH_ADMIN_PASSWORD: z.string(),
});

/**
 * Reads the credentials of the administrator, who may create API keys. Only `npm run keys` uses them.
 * @throws {ConfigError}
 */
export function readAdministrator(env: Environment): { username: string; password: string } {
  const value = read(administrator, env);
  return { username: value.ELASTICSEARCH_ADMIN_USER, password: value.ELASTICSEARCH_ADMIN_PASSWORD };
}

/**
 * Reads the configuration of the Kibana setup. The server does not need it.
 * @throws {ConfigError} like `readConfig`.
 */
export function readKibanaConfig(env: Environment) {
  const value = read(kibanaVariables, env);
  return deepFreeze({ url: value.KIBANA_URL, apiKey: value.KIBANA_API_KEY, slug: value.REGISTRY_SLUG });
}
