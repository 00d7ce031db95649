import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { MCP_PROGRAM, startMcp } from '../../support/mcp-client.js';
import { newFolder } from '../../support/run-folder.js';

describe('The MCP server', () => {
  it('is one file that starts within a second', async () => {
    const program = join(newFolder(), 'mcp.mjs');
    await copyFile(MCP_PROGRAM, program);
    const begun = performance.now();
    const client = await startMcp('http://127.0.0.1:1', { program });
    expect((await client.listTools()).tools).to.have.length(3);
    expect(performance.now() - begun).to.be.lessThan(1000);
    await client.close();
  });
});
