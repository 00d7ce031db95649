import * as z from 'zod';
import type { Operation } from '../../http/openapi/document.js';
import type { Handler } from '../../http/request/request-context.js';
import { readAgainIfDeleted } from '../../read/snapshot-read.js';
import type { Catalog } from '../../search/catalog.js';
import { finder, typedText } from './find.js';
import { arrayResponse, faultResponse, invalidCall, MAX_CALL_BYTES, readCall } from './xml-rpc.js';

const MAX_HITS = 100;

/** https://packaging.python.org/en/latest/specifications/version-specifiers/#appendix-parsing-version-strings-with-regular-expressions */
const PEP_440 =
  /^v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z\d]+([-_.][a-z\d]+)*)?$/i;

const CALL = `<?xml version="1.0"?><methodCall><methodName>search</methodName><params><param><value><struct>
<member><name>name</name><value><array><data><value><string>redis</string></value></data></array></value></member>
</struct></value></param><param><value><string>or</string></value></param></params></methodCall>`;

export const pipOperation: Operation = {
  id: 'searchForPip',
  tag: 'Clients',
  summary: '`pip search`',
  description:
    'XML-RPC `search({name: […], summary: […]}, operator)`: what `/search` finds for the words in `name` by weight. ' +
    `A body may have ${MAX_CALL_BYTES} bytes. Errors are faults with the status 200, as XML-RPC requires.`,
  call: { description: 'The call.', contentType: 'text/xml', schema: z.string(), example: CALL },
  response: {
    description: `An array of at most ${MAX_HITS} structures with \`name\`, \`version\` and \`summary\`, or a fault.`,
    contentType: 'text/xml',
    schema: z.string(),
    example: String(arrayResponse([{ name: 'redis', version: '7.1.0', summary: '' }]).body),
  },
  errors: { respond: faultResponse },
};

/** `POST /pypi` for pip. */
export function pipSearch(catalog: Catalog): Handler {
  return async ({ req, state }) => {
    const { method, members } = await readCall(req);
    if (method !== 'search') throw invalidCall('must be of the method search');
    const parsed = typedText.safeParse(members.get('name')?.join(' '));
    if (!parsed.success) throw invalidCall(`is invalid: name ${parsed.error.issues[0]?.message}`);
    const { snapshots } = catalog;
    return readAgainIfDeleted(
      catalog,
      undefined,
      () => snapshots.served(),
      async (snapshot) => {
        const { entries } = await finder(catalog, snapshot, state.requestId)(parsed.data, MAX_HITS, 0);
        const hits = entries.map(({ name, version, description: summary = '' }) => ({
          name,
          version: pythonVersion(version),
          summary,
        }));
        return arrayResponse(hits);
      },
    );
  };
}

/** pip ends with a traceback if a version is not one of PEP 440, such as `latest`: that becomes `0+latest`. */
export function pythonVersion(version: string): string {
  if (PEP_440.test(version)) return version;
  const parts = version.match(/[a-z\d]+/gi) ?? [];
  return parts.length === 0 ? '0' : `0+${parts.join('.')}`;
}
