// Keeps all names in a file: `node examples/mirror-names.mjs http://127.0.0.1:3000 names.json`, as often as you like.
// The first run reads the whole list, later ones what has changed since. A run that fails or is killed leaves the file as it was.
import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

const [service, file] = process.argv.slice(2).map((argument) => argument.replace(/\/+$/, ''));
if (file === undefined) throw new Error('usage: node mirror-names.mjs SERVICE FILE');

const saved = await readFile(file, 'utf8').then(JSON.parse, (error) => {
  if (error.code !== 'ENOENT') throw error;
  return { names: [] };
});
const names = new Set(saved.names);
const apply = ({ change, name }) => names[change === 'removed' ? 'delete' : 'add'](name);
let snapshot = saved.snapshot && (await readAll(`/changes?since=${saved.snapshot}&limit=1000`, apply));
while (snapshot === undefined) {
  names.clear();
  snapshot = await readAll('/browse?limit=500', ({ name }) => names.add(name));
}
await writeFile(`${file}.new`, JSON.stringify({ snapshot, names: [...names] }), { flush: true });
await rename(`${file}.new`, file);
console.log(`${names.size} names of snapshot ${snapshot}`);

/** Reads all pages of a list. @returns the snapshot that they lead to; undefined if the one asked for is gone. */
async function readAll(path, onResult) {
  for (let url = service + path, waits = 0; ;) {
    const response = await fetch(url);
    if (response.status === 410) return undefined;
    const seconds = response.headers.get('Retry-After'); // over the limit, or not ready
    if (seconds !== null && waits++ < 10) await pause(seconds * 1000);
    else if (!response.ok) throw new Error(`${url}: ${response.status}`);
    else {
      const { results, to = response.headers.get('X-Snapshot') } = await response.json();
      results.forEach(onResult);
      const [, next] = /<([^>]*)>; rel="next"/.exec(response.headers.get('Link')) ?? [];
      if (next === undefined) return to;
      [url, waits] = [new URL(next, url).href, 0];
    }
  }
}
