import { expect } from 'chai';
import { DownloadError } from '../../../dev/maven.js';
import { SetupError } from '../../../dev/service.js';
import { couldNotStart } from '../../../dev/services.js';

describe('couldNotStart', () => {
  it('does not advise to install a Maven that has no network', () => {
    const offline = new DownloadError('Maven could not fetch An Engine 1: Unknown host');
    expect(couldNotStart('An Engine', 'ENGINE_URL', offline).message).to.equal(
      'An Engine could not be started: Maven could not fetch An Engine 1: Unknown host. ' +
        "Check the network and the proxy in Maven's settings, or set ENGINE_URL to a running one.",
    );
    const missing = new SetupError('Maven (mvn) is not installed');
    expect(couldNotStart('An Engine', 'ENGINE_URL', missing).message).to.equal(
      'An Engine could not be started: Maven (mvn) is not installed. ' +
        'Install Docker, or Maven and a JDK 21+, or set ENGINE_URL to a running one.',
    );
  });
});
