import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import { z } from 'zod';

type Environment = Readonly<Record<string, string | undefined>>;

/** A variable of the environment that is missing or malformed; the message is one line for the operator. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The snapshot that comes with the project: the binary packages of Debian bookworm. */
const BUNDLED_DATASET = new URL('../data/debian-bookworm.csv.gz', import.meta.url).href;

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

/** An absolute URL with one of the given protocols (`http:` and so on). */
function url(...protocols: string[]) {
  const spelled = protocols
    .map((protocol) => `${protocol}${protocol === 'file:' ? '///' : '//'}…`)
    .join(' or ');
  return z
    .string()
    .refine((text) => protocols.some((protocol) => isUrl(text, protocol)), `must be ${spelled}`);
}

/** A file has an absolute path, and none has a host. */
function isUrl(text: string, protocol: string): boolean {
  if (!URL.canParse(text) || new URL(text).protocol !== protocol) return false;
  return protocol !== 'file:' || text.startsWith('file:///');
}

const REPLICAS_MUST = 'must be a number such as 1 or a range such as 0-1 or 0-all';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

function everyItemIs(schema: z.ZodType<string>) {
  return (items: string[]) => items.length > 0 && items.every((item) => schema.safeParse(item).success);
}

/** A name that Elasticsearch's built-in templates would take for a data stream's cannot be that of an index. */
const OF_DATA_STREAMS = /^(logs|metrics|profiling|synthetics)(-|$)/;

const slug = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'must be 1 to 40 of a-z, 0-9, _ and -, beginning with a letter')
  .refine(
    (text) => !OF_DATA_STREAMS.test(text),
    'must not be or begin with logs-, metrics-, profiling- or synthetics-: Elasticsearch keeps these for data streams',
  )
  .default('registry');

const variables = z.object({
  PORT: wholeNumber(0, 65535).default(3000),
  HOST: z.string().default('127.0.0.1'),
  ELASTICSEARCH_URL: list.refine(
    everyItemIs(url('http:', 'https:')),
    'must be the http(s) address of one or more nodes, comma separated',
  ),
  ELASTICSEARCH_API_KEY: z.string().optional(),
  ELASTICSEARCH_REBUILD_API_KEY: z.string().optional(),
  REDIS_URL: url('redis:', 'rediss:').optional(),
  DATASET_URL: url('http:', 'https:', 'file:').default(BUNDLED_DATASET),
  REGISTRY_SLUG: slug,
  REGISTRY_SOURCE: z.string().optional(),
  PACKAGE_URL_TEMPLATE: url('http:', 'https:')
    .refine((text) => /\{\+?name\}/.test(text), 'must contain {name} or {+name}')
    .optional(),
  REBUILD_SECRET: z.string().optional(),
  BYPASS_SECRET: z.string().optional(),
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
  CACHE_MAX_BYTES: wholeNumber(0, 2 ** 40).default(64 * 2 ** 20),
  REBUILD_INTERVAL_SECONDS: wholeNumber(0, 2_000_000).default(0),
  REBUILD_MAX_SHRINK_PERCENT: wholeNumber(0, 100).default(10),
  DATASET_MAX_BAD_ROWS: wholeNumber(0, 1_000_000).default(0),
  METRICS_PORT: wholeNumber(0, 65535).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

const kibanaVariables = z.object({
  KIBANA_URL: url('http:', 'https:').default('http://127.0.0.1:5601'),
  KIBANA_API_KEY: z.string().optional(),
  REGISTRY_SLUG: slug,
});

function deepFreeze<T extends object>(value: T): Readonly<T> {
  for (const part of Object.values(value))
    if (typeof part === 'object' && part !== null) deepFreeze(part as object);
  return Object.freeze(value);
}

function areAddresses(items: string[]): boolean {
  const areWritten = items.every((item) => isIP(item.split('/')[0] ?? '') !== 0);
  try {
    proxyAddr.compile(items);
    return areWritten && items.length > 0;
  } catch {
    return false;
  }
}

/** The variables that are set to something: an empty one counts as absent. */
export function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

/** What a variable that must be set may look like. */
const EXAMPLES: Environment = { ELASTICSEARCH_URL: 'http://127.0.0.1:9200' };

/** What is set, as the schema has it. @throws {ConfigError} */
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

/** Everything that can be configured, checked and frozen. The units are in the names. */
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
      url: value.DATASET_URL,
      packageUrlTemplate: value.PACKAGE_URL_TEMPLATE,
      maxBadRows: value.DATASET_MAX_BAD_ROWS,
    },
    index: { shards: value.INDEX_SHARDS, replicas: value.INDEX_REPLICAS },
    rebuild: {
      secret: value.REBUILD_SECRET,
      intervalSeconds: value.REBUILD_INTERVAL_SECONDS,
      maxShrinkPercent: value.REBUILD_MAX_SHRINK_PERCENT,
    },
    bypassSecret: value.BYPASS_SECRET,
    trustedProxies: value.TRUSTED_PROXIES,
    rateLimit: { points: value.RATE_LIMIT_POINTS, windowSeconds: value.RATE_LIMIT_WINDOW_SECONDS },
    cacheMaxBytes: value.CACHE_MAX_BYTES,
    metricsPort: value.METRICS_PORT,
    logLevel: value.LOG_LEVEL,
  });
}

const administrator = z.object({
  ELASTICSEARCH_ADMIN_USER: z.string(),
  ELASTICSEARCH_ADMIN_PASSWORD: z.string(),
});

/**
 * Who may make API keys. Only the command that makes them asks: the server is never given this.
 * @throws {ConfigError}
 */
export function readAdministrator(env: Environment): { username: string; password: string } {
  const value = read(administrator, env);
  return { username: value.ELASTICSEARCH_ADMIN_USER, password: value.ELASTICSEARCH_ADMIN_PASSWORD };
}

/**
 * Reads what the set-up of Kibana needs, as `readConfig` does, which needs nothing of it.
 * @throws {ConfigError} like `readConfig`.
 */
export function readKibanaConfig(env: Environment) {
  const value = read(kibanaVariables, env);
  return deepFreeze({ url: value.KIBANA_URL, apiKey: value.KIBANA_API_KEY, slug: value.REGISTRY_SLUG });
}
