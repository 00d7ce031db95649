import { expect } from 'chai';
import { run } from '../../../dev/run.js';
import { packagesNamed } from '../../support/datasets.js';
import { useService } from '../../support/service.js';

/** The Inspector needs Node 22.19, which comes from the npm package `node`, as in scripts/test-node.mjs. */
const INSPECTOR = ['--package=node@22', '--package=@modelcontextprotocol/inspector@2.12.0'];

describe('The MCP Inspector', function () {
  // The first run downloads it.
  this.timeout(5 * 60_000);
  const suite = useService(() => packagesNamed(['redis-py', 'redispi']));

  async function inspect(...args: string[]) {
    const server = ['node', 'dist/mcp/mcp.js', '--url', suite.service.url];
    const command = ['exec', '--yes', ...INSPECTOR, '--', 'mcp-inspector', '--cli', ...server, ...args];
    return JSON.parse(await run('npm', command)) as {
      tools: { name: string }[];
      structuredContent: { results: { name: string; status?: string }[] };
    };
  }

  const resultsOf = async (tool: string, arg: string) => {
    const call = ['--method', 'tools/call', '--tool-name', tool, '--tool-arg', arg];
    return (await inspect(...call)).structuredContent.results.map(({ name, status }) => [name, status]);
  };

  it('lists the tools of the MCP server', async () => {
    const { tools } = await inspect('--method', 'tools/list');
    expect(tools.map(({ name }) => name)).to.deep.equal([
      'check_packages',
      'search_packages',
      'similar_packages',
    ]);
  });

  it('calls all tools', async () => {
    expect(await resultsOf('check_packages', 'names=["redis-py","Redis_Py","other"]')).to.deep.equal([
      ['redis-py', 'exists'],
      ['Redis_Py', 'exists_as'],
      ['other', 'missing'],
    ]);
    expect(await resultsOf('search_packages', 'query=spi')).to.deep.equal([['redispi', undefined]]);
    expect(await resultsOf('similar_packages', 'name=redispy')).to.deep.equal([
      ['redis-py', undefined],
      ['redispi', undefined],
    ]);
  });
});
