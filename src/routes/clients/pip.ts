import * as z from 'zod';
import type { Operation } from '../../http/openapi/document.js';
import type { Handler } from '../../http/request/request-context.js';
import { readAgainIfDeleted } from '../../read/snapshot-read.js';
import type { Catalog } from '../../search/catalog.js';
import { typedText } from '../suggest.js';
import { find } from './find.js';
import { arrayResponse, faultResponse, invalidCall, MAX_CALL_BYTES, readCall } from './xml-rpc.js';

const MAX_HITS = 100;

/** The versions of PEP 440, https://packaging.python.org/en/latest/specifications/version-specifiers/ (appendix). */
const PEP_440 =
  /^v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z\d]+([-_.][a-z\d]+)*)?$/i;

const XML = { contentType: 'text/xml', schema: z.string() };

export const pipOperation: Operation = {
  id: 'searchForPip',
  tag: 'Clients',
  summary: '`pip search`',
  description: 'Finds what `/search` finds for all words by weight. Errors are faults with status 200.',
  call: {
    description: `XML-RPC \`search({name: [words], …}, …)\`, up to ${MAX_CALL_BYTES} bytes.`,
    ...XML,
    example: '<methodCall><methodName>search</methodName><params></params></methodCall>',
  },
  response: {
    description: `A fault, or an array of up to ${MAX_HITS} structures of \`name\`, \`version\` and \`summary\`.`,
    ...XML,
    example: String(arrayResponse([{ name: 'redis', version: '7.1.0', summary: '' }]).body),
  },
  errors: { respond: faultResponse },
};

/** `POST /pypi` for pip. */
export function pipSearch(catalog: Catalog): Handler {
  return async ({ req, state }) => {
    const { method, members } = await readCall(req);
    if (method !== 'search') throw invalidCall('must be of the method search');
    const { data: text, error } = typedText.safeParse(members.get('name')?.join(' '));
    if (text === undefined) throw invalidCall(`is invalid: name ${error.issues[0]?.message}`);
    const served = () => catalog.snapshots.served();
    return readAgainIfDeleted(catalog, undefined, served, async (snapshot) => {
      const wanted = { text, limit: MAX_HITS, offset: 0 };
      const { entries } = await find(catalog, snapshot, wanted, state.requestId);
      return arrayResponse(
        entries.map(({ name, version, description: summary = '' }) => ({
          name,
          version: pythonVersion(version),
          summary,
        })),
      );
    });
  };
}

/** pip ends with a traceback if a version is not one of PEP 440, such as `latest`: that becomes `0+latest`. */
function pythonVersion(version: string): string {
  if (PEP_440.test(version)) return version;
  const parts = version.match(/[a-z\d]+/gi) ?? [];
  return parts.length === 0 ? '0' : `0+${parts.join('.')}`;
}
