import * as z from 'zod';
import {
  datasetUrl,
  datasetUrls,
  host,
  ipRanges,
  nodeUrls,
  plainUrl,
  redisUrl,
  urlTemplate,
} from './addresses.js';
import { DATASET_FORMATS, defaultNameRule, defaultPurlType, FORMATS } from './dataset-format.js';
import { jsonPaths } from './json-paths.js';
import { secretsIn } from './secrets.js';
import { NAME_RULES } from '../util/name-rule.js';
import { PROJECT_FOLDER } from '../util/project-folder.js';
import { trimWhiteSpace } from '../util/unicode.js';

/** Environment variables are missing or malformed. The message has one line for each variable, for the operator. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const BUNDLED_DATASET = new URL('data/debian-bookworm.csv.gz', PROJECT_FOLDER).href;

/**
 * Default limit of client connections. A connection takes up to 80 KB (requests and four responses) if its client does
 * not read the responses. An idle connection takes 10 KB. A thousand connections fit into a container of 512 MB and the
 * usual open-file limits.
 */
const DEFAULT_MAX_CONNECTIONS = 1000;

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

function wholeNumber(min: number, max: number) {
  const must = `must be a whole number from ${min} to ${max}`;
  return z.string().regex(/^\d+$/, must).transform(Number).pipe(z.int(must).min(min, must).max(max, must));
}

/** An API key, which is sent as a header value. */
const apiKey = z.string().regex(/^[\x21-\x7e]+$/, 'must be one line of ASCII characters without spaces');

/**
 * Maximum length of a secret in UTF-16 code units. Percent-encoded, a unit takes up to nine bytes, so any secret fits
 * into a request head.
 */
const MAX_SECRET_LENGTH = 1024;

const SECRET_MUST = `must be at most ${MAX_SECRET_LENGTH} characters of UTF-8, without control characters, and without white space at its ends`;

/**
 * A secret that clients send in a header or a query string. Rejects line ends, which usually come from a file or a
 * manifest, and U+FFFD, which stands for bytes that are not UTF-8. Rejects secrets that begin with `change-me`, because
 * the example files contain such placeholders.
 */
const secret = z
  .string()
  .max(MAX_SECRET_LENGTH, SECRET_MUST)
  .regex(/^[^\p{Cc}\uFFFD]*$/u, SECRET_MUST)
  .refine((text) => trimWhiteSpace(text) === text, SECRET_MUST)
  .regex(
    /^(?!change[-_ ]?me).{8}/isu,
    'must be your own secret, at least 8 characters, not beginning with change-me: openssl rand -hex 32 makes one',
  );

export const DEFAULT_SLUG = 'registry';

const REPLICAS_MUST = 'must be a number such as 1 or a range such as 0-1 or 0-all';

/** The columns or members with the name and the weight, in the document at `WEIGHTS_URL`. */
const weightsColumns = z
  .string()
  .transform((text) => text.split(',').map((column) => column.trim()))
  .refine(
    (columns) => columns.length === 2 && !columns.includes('') && new Set(columns).size === 2,
    'must be two different names, such as project,download_count',
  )
  .transform(([name = '', weight = '']) => ({ name, weight }));

const datasetSettings = z.object({
  DATASET_URL: datasetUrls.optional(),
  DATASET_FORMAT: z.enum(DATASET_FORMATS, `must be one of ${DATASET_FORMATS.join(', ')}`).default('csv'),
  DATASET_JSON: jsonPaths.optional(),
  DATASET_AUTHORIZATION: z
    .string()
    .regex(/^[\x21-\x7e]+ [\x21-\x7e]+$/, 'must be a scheme and credentials, such as Bearer <token>')
    .optional(),
  PACKAGE_URL_TEMPLATE: urlTemplate.optional(),
  NAME_RULE: z.enum(NAME_RULES, `must be one of ${NAME_RULES.join(', ')}`).optional(),
  DATASET_MAX_BAD_ROWS: wholeNumber(0, 1_000_000).default(0),
  DATASET_DOWNLOAD_TIMEOUT_SECONDS: wholeNumber(1, 86_400).default(3600),
});

type DatasetSettings = z.infer<typeof datasetSettings>;

const settings = datasetSettings.extend({
  PORT: wholeNumber(0, 65535).default(3000),
  HOST: host.default('127.0.0.1'),
  ELASTICSEARCH_URL: nodeUrls,
  ELASTICSEARCH_API_KEY: apiKey.optional(),
  ELASTICSEARCH_REBUILD_API_KEY: apiKey.optional(),
  REDIS_URL: redisUrl.optional(),
  WEIGHTS_URL: datasetUrl.optional(),
  WEIGHTS_COLUMNS: weightsColumns.default({ name: 'name', weight: 'weight' }),
  REGISTRY_SLUG: z
    .string()
    .regex(
      /^[a-z][a-z0-9_-]{0,39}$/,
      'must be 1 to 40 characters of a-z, 0-9, _ and -, beginning with a letter',
    )
    .default(DEFAULT_SLUG),
  REGISTRY_SOURCE: z
    .string()
    .regex(/^[^\p{Cc}\u2028\u2029]+$/u, 'must be one line without control characters')
    .optional(),
  PURL_TYPE: z
    .string()
    .regex(/^[a-z][a-z\d.-]*$/, 'must be a type of package URLs in lower case, such as npm')
    .optional(),
  REBUILD_SECRET: secret.optional(),
  BYPASS_SECRET: secret.optional(),
  TRUSTED_PROXIES: ipRanges.default([]),
  PUBLIC_URL: plainUrl.optional(),
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
  KEEP_ALIVE_SECONDS: wholeNumber(1, 86_400).default(75),
  CACHE_MAX_BYTES: wholeNumber(0, 2 ** 40).default(64 * 2 ** 20),
  REBUILD_INTERVAL_SECONDS: wholeNumber(0, 2_000_000).default(0),
  REBUILD_MAX_SHRINK_PERCENT: wholeNumber(0, 100).default(10),
  CHANGES_RETENTION: wholeNumber(0, 100).default(30),
  METRICS_PORT: wholeNumber(0, 65535).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

export const VARIABLES = Object.keys(settings.shape);

/** The rule is checked even if other variables are malformed, but not if `DATASET_FORMAT` is. */
function ofVariable(name: string, error: string) {
  const when = ({ value }: { value: unknown }) =>
    DATASET_FORMATS.includes((value as DatasetSettings).DATASET_FORMAT);
  return { path: [name], error, when };
}

function withDatasetRules<T extends z.ZodType<DatasetSettings>>(schema: T): T {
  return schema
    .refine(
      // The bundled list is CSV.
      ({ DATASET_FORMAT, DATASET_URL }) => DATASET_FORMAT === 'csv' || DATASET_URL !== undefined,
      ofVariable('DATASET_URL', 'must be set with this DATASET_FORMAT'),
    )
    .refine(
      ({ DATASET_FORMAT, DATASET_URL }) => DATASET_FORMAT === 'debian' || !((DATASET_URL?.length ?? 0) > 1),
      ofVariable('DATASET_URL', 'must be one address, unless DATASET_FORMAT is debian'),
    )
    .refine(
      ({ DATASET_FORMAT, DATASET_JSON }) => DATASET_FORMAT === 'json' || DATASET_JSON === undefined,
      ofVariable('DATASET_JSON', 'must be set only with DATASET_FORMAT=json'),
    )
    .refine(
      ({ DATASET_FORMAT, PACKAGE_URL_TEMPLATE }) =>
        'hasUrls' in FORMATS[DATASET_FORMAT] || PACKAGE_URL_TEMPLATE !== undefined,
      ofVariable('PACKAGE_URL_TEMPLATE', 'must be set with this DATASET_FORMAT, whose packages have no url'),
    );
}

const variables = withDatasetRules(settings);
const datasetVariables = withDatasetRules(datasetSettings);

/** An empty variable counts as absent. */
export function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

/** @throws {ConfigError} with one line for each missing or malformed variable, which states the expected value. */
function read<T>(schema: z.ZodType<T>, env: NodeJS.ProcessEnv): T {
  const parsed = schema.safeParse(withoutEmpty(env));
  if (parsed.success) return parsed.data;
  const faults = z.flattenError(parsed.error).fieldErrors as Record<string, string[]>;
  throw new ConfigError(
    Object.entries(faults)
      .map(([name, [must]]) => `${name} ${must}`)
      .join('\n'),
  );
}

/** Names of members include the units. */
export type Config = ReturnType<typeof readConfig>;

/** An empty variable counts as absent. @throws {ConfigError} */
export function readConfig(env: NodeJS.ProcessEnv) {
  const value = read(variables, env);
  return {
    port: value.PORT,
    host: value.HOST,
    elasticsearch: {
      nodes: value.ELASTICSEARCH_URL,
      apiKey: value.ELASTICSEARCH_API_KEY,
      rebuildApiKey: value.ELASTICSEARCH_REBUILD_API_KEY ?? value.ELASTICSEARCH_API_KEY,
    },
    redisUrl: value.REDIS_URL,
    registry: { slug: value.REGISTRY_SLUG, source: value.REGISTRY_SOURCE },
    /** The accepted type of package URLs; none are accepted without it. */
    purlType: value.PURL_TYPE ?? defaultPurlType(value.DATASET_FORMAT),
    dataset: datasetConfig(value),
    weights: { url: value.WEIGHTS_URL, columns: value.WEIGHTS_COLUMNS },
    indexReplicas: value.INDEX_REPLICAS,
    rebuild: {
      secret: value.REBUILD_SECRET,
      intervalSeconds: value.REBUILD_INTERVAL_SECONDS,
      maxShrinkPercent: value.REBUILD_MAX_SHRINK_PERCENT,
    },
    changesRetention: value.CHANGES_RETENTION,
    bypassSecret: value.BYPASS_SECRET,
    trustedProxies: value.TRUSTED_PROXIES,
    publicUrl: value.PUBLIC_URL,
    rateLimit: { points: value.RATE_LIMIT_POINTS, windowSeconds: value.RATE_LIMIT_WINDOW_SECONDS },
    maxConnections: value.MAX_CONNECTIONS,
    keepAliveSeconds: value.KEEP_ALIVE_SECONDS,
    cacheMaxBytes: value.CACHE_MAX_BYTES,
    metricsPort: value.METRICS_PORT,
    logLevel: value.LOG_LEVEL,
    secrets: secretsIn(env),
  };
}

function datasetConfig(value: DatasetSettings) {
  return {
    /** One address, or several for a format whose list has several documents. */
    urls: (value.DATASET_URL ?? [BUNDLED_DATASET]) as [string, ...string[]],
    format: value.DATASET_FORMAT,
    authorization: value.DATASET_AUTHORIZATION,
    jsonPaths: value.DATASET_JSON ?? { items: [] },
    /** Whether the dataset is the bundled one. Only the registry `DEFAULT_SLUG` may serve the bundled dataset. */
    isSample: value.DATASET_URL === undefined,
    packageUrlTemplate: value.PACKAGE_URL_TEMPLATE,
    nameRule: value.NAME_RULE ?? defaultNameRule(value.DATASET_FORMAT),
    maxBadRows: value.DATASET_MAX_BAD_ROWS,
    downloadTimeoutSeconds: value.DATASET_DOWNLOAD_TIMEOUT_SECONDS,
  };
}

export type DatasetConfig = ReturnType<typeof datasetConfig>;

/** For `npm run dataset`, which needs no engine. @throws {ConfigError} like `readConfig`. */
export function readDatasetConfig(env: NodeJS.ProcessEnv): DatasetConfig {
  return datasetConfig(read(datasetVariables, env));
}

const keysVariables = settings.pick({ ELASTICSEARCH_URL: true, REGISTRY_SLUG: true }).extend({
  // HTTP's basic authentication separates user and password by the first colon.
  ELASTICSEARCH_ADMIN_USER: z.string('is required').regex(/^[^:]+$/, 'must have no colon'),
  ELASTICSEARCH_ADMIN_PASSWORD: z.string('is required'),
});

/** For `npm run keys`, with an administrator's credentials. @throws {ConfigError} like `readConfig`. */
export function readKeysConfig(env: NodeJS.ProcessEnv) {
  const value = read(keysVariables, env);
  return {
    nodes: value.ELASTICSEARCH_URL,
    slug: value.REGISTRY_SLUG,
    username: value.ELASTICSEARCH_ADMIN_USER,
    password: value.ELASTICSEARCH_ADMIN_PASSWORD,
  };
}
