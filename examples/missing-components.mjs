// Lists the components of a CycloneDX file (JSON) that a registry does not have. The service knows packages of one type:
// `node examples/missing-components.mjs http://127.0.0.1:3000 npm bom.json`. The exit status is 1 if some are missing.
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

const [service, type, file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: node missing-components.mjs SERVICE TYPE FILE');

const componentsIn = ({ components = [] }) => components.flatMap((one) => [one, ...componentsIn(one)]);
const purls = componentsIn(JSON.parse(await readFile(file, 'utf8')))
  .map(({ purl = '' }) => purl.replace(/[?#].*/s, ''))
  .filter((purl) => purl.startsWith(`pkg:${type}/`));
const missing = [];
for (let at = 0; at < purls.length; at += 50) {
  const { results } = await read(purls.slice(at, at + 50));
  missing.push(...results.filter((result) => result.package === null).map(({ purl }) => purl));
}
console.log([...new Set(missing)].join('\n') || `all ${purls.length} components exist`);
process.exitCode = missing.length > 0 ? 1 : 0;

async function read(some) {
  const url = `${service.replace(/\/+$/, '')}/lookup?${new URLSearchParams(some.map((purl) => ['purl', purl]))}`;
  for (;;) {
    const response = await fetch(url);
    if (response.ok) return await response.json();
    const seconds = response.headers.get('Retry-After'); // over the limit, or not ready
    if (seconds === null) throw new Error(await response.text());
    await pause(seconds * 1000);
  }
}
