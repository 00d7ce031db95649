import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findPaths } from '../../src/dev/paths.js';
import { run } from '../../src/dev/run.js';

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
 * @param packageNames by language.
 */
export async function generateClients(
  python: string,
  folder: string,
  packageNames: Record<string, string>,
): Promise<void> {
  const configs: string[] = [];
  for (const [language, packageName] of Object.entries(packageNames)) {
    const config = {
      generatorName: language,
      inputSpec: 'openapi.json',
      outputDir: language,
      additionalProperties: { packageName },
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
  const go = await installed('go.sh', join(programs, 'go'));
  const program = join(folder, 'program');
  const env = { GOTOOLCHAIN: 'local', GOCACHE: join(programs, 'go-objects'), CGO_ENABLED: '0' };
  await run(go, ['build', '-o', program, '.'], { cwd: folder, env: { ...process.env, ...env } });
  return program;
}
