import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findPaths } from '../../dev/paths.js';
import { run } from '../../dev/run.js';

const execute = promisify(execFile);

/** Runs a script that prints a path, and says on the terminal what it installs. */
async function installed(script: string, ...args: string[]): Promise<string> {
  const running = execute(`scripts/${script}`, args);
  running.child.stderr?.pipe(process.stderr);
  return (await running).stdout.trim();
}

/**
 * Creates the virtual environment of a file of requirements, once.
 * @returns the path of its Python.
 */
export async function pythonWith(name: string, requirements: string): Promise<string> {
  const digest = hash('sha256', await readFile(requirements)).slice(0, 12);
  const folder = join(findPaths(process.env).programs, `${name}-${digest}`);
  return installed('python-environment.sh', folder, '--requirement', requirements);
}

/**
 * Generates clients from the file `openapi.json`, each in a folder with the name of its language.
 * @param python has openapi-generator-cli, which needs a `java` on the PATH.
 * @param properties additional properties of the generator, by language.
 */
export async function generateClients(
  python: string,
  folder: string,
  properties: Record<string, Record<string, string>>,
): Promise<void> {
  const configs: string[] = [];
  for (const [language, additionalProperties] of Object.entries(properties)) {
    const config = {
      generatorName: language,
      inputSpec: 'openapi.json',
      outputDir: language,
      additionalProperties,
    };
    configs.push(`${language}.json`);
    await writeFile(join(folder, `${language}.json`), JSON.stringify(config));
  }
  await run(python, ['-c', 'from openapi_generator_cli import cli; cli()', 'batch', ...configs], {
    cwd: folder,
    // A short run without these flags takes twice the processor time.
    env: { ...process.env, JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' },
  });
}

/**
 * Builds the Go program in a folder, which imports only the standard library.
 * @returns its path.
 */
export async function buildGo(folder: string): Promise<string> {
  const { programs } = findPaths(process.env);
  const go = await installed('go.sh');
  const program = join(folder, 'program');
  const env = { GOTOOLCHAIN: 'local', GOCACHE: join(programs, 'go-objects'), CGO_ENABLED: '0' };
  const options = { cwd: folder, env: { ...process.env, ...env } };
  await run(go, ['vet', '.'], options);
  await run(go, ['build', '-o', program, '.'], options);
  return program;
}

const LINTER = '@stoplight/spectral-cli@6.16.3';

/** Fails if the file `openapi.json` of a folder violates a rule of Spectral for OpenAPI, warnings included. */
export async function lintOpenApi(folder: string): Promise<void> {
  // Whom to ask is up to the operator of a service.
  const ruleset = { extends: 'spectral:oas', rules: { 'info-contact': 'off' } };
  await writeFile(join(folder, 'ruleset.json'), JSON.stringify(ruleset));
  const lint = ['spectral', 'lint', '--ruleset', 'ruleset.json', '--fail-severity', 'hint', 'openapi.json'];
  await run('npm', ['exec', '--yes', '--ignore-scripts', `--package=${LINTER}`, '--', ...lint], {
    cwd: folder,
  });
}

/** The generator of types, and the client that uses them. The generator needs an earlier compiler than this project has. */
const TYPES = ['--package=openapi-typescript@7.13.0', '--package=typescript@5.9.3'];
const FETCH = 'openapi-fetch@0.17.0';

/**
 * Generates types from the file `openapi.json` of a folder, and compiles the program `reader.ts` in it.
 * @returns its path.
 */
export async function buildTypeScript(folder: string): Promise<string> {
  const options = { cwd: folder };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const generate = [
    'exec',
    '--yes',
    ...TYPES,
    '--',
    'openapi-typescript',
    'openapi.json',
    '--output',
    'schema.d.ts',
  ];
  await run('npm', generate, options);
  await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', FETCH], options);
  const strict = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
  const types = ['--typeRoots', fileURLToPath(new URL('../../node_modules/@types', import.meta.url))];
  const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
  await run(process.execPath, [tsc, ...strict, ...types, 'reader.ts'], options);
  return join(folder, 'reader.js');
}

/**
 * Compiles the Java project in a folder. Warnings of the compiler are errors, except those that it does not have by default:
 * the generator's templates have raw types.
 * @returns the class path.
 */
export async function buildJava(folder: string): Promise<string> {
  const options = { cwd: folder };
  await run('mvn', ['--batch-mode', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'], options);
  const libraries = await readFile(join(folder, 'classpath'), 'utf8');
  const files = await readdir(join(folder, 'src/main/java'), { recursive: true });
  const sources = files.filter((file) => file.endsWith('.java')).map((file) => join('src/main/java', file));
  await run('javac', ['-Werror', '-d', 'classes', '-cp', libraries, ...sources], options);
  return `${join(folder, 'classes')}:${libraries}`;
}
