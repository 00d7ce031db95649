import { expect } from 'chai';
import { freePort } from '../../dev/free-port.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { logLines, REBUILD, startService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('The reason of a failed rebuild', function () {
  this.timeout(ENGINES_TIMEOUT_MS);

  /**
   * Starts a service whose first rebuild fails.
   * @returns what responses reveal about the failure.
   */
  async function failureWith(datasetUrl: string): Promise<string> {
    const service = await startService({ DATASET_URL: datasetUrl });
    try {
      await waitFor(() => service.failure() !== undefined, 'the first rebuild to fail', 60_000);
      return JSON.stringify((await service.get(REBUILD)).body);
    } finally {
      await service.end();
    }
  }

  it('names the dataset server and what it responded', async () => {
    const port = await freePort();
    const shown = await failureWith(`http://reader:hush@localhost:${port}/names.csv?token=hush`);
    expect(shown).to.contain('the dataset could not be downloaded: ').and.to.contain('ECONNREFUSED');
    expect(shown).not.to.contain('hush');
  });

  it('does not contain the path of a dataset file, unlike the log', async () => {
    const shown = await failureWith('file:///nowhere/private/names.csv');
    expect(shown).to.contain('there is no file at the path of the dataset');
    expect(shown).not.to.contain('private');
    expect(JSON.stringify(logLines)).to.contain('/nowhere/private/names.csv');
  });
});
