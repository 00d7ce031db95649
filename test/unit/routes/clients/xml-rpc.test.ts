import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { readCall } from '../../../../src/routes/clients/xml-rpc.js';
import { callOf } from '../../../support/xml-rpc.js';

/** A request whose body has these chunks. */
function requestOf(chunks: () => Generator<Buffer>): IncomingMessage {
  return { [Symbol.asyncIterator]: chunks } as unknown as IncomingMessage;
}

describe('A call of XML-RPC', () => {
  it('is copied as it arrives, because a chunk of one byte holds hundreds', async () => {
    const request = requestOf(function* () {
      const chunk = Buffer.alloc(1);
      for (const byte of Buffer.from(callOf('search', { name: ['redis'] }))) {
        chunk[0] = byte;
        yield chunk;
      }
    });
    const { members } = await readCall(request);
    expect(members.get('name')).to.deep.equal(['redis']);
  });

  it('is invalid if the connection ends in its body', async () => {
    const request = requestOf(function* () {
      yield Buffer.from('<methodCall>');
      throw Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
    });
    const error = await readCall(request).catch((error: unknown) => error);
    expect(error).to.include({ code: 'invalid_parameter', message: 'the call was cut off' });
  });
});
