import { expect } from 'chai';
import packageJson from '../../../package.json' with { type: 'json' };

describe('npm run', () => {
  const scripts = Object.entries(packageJson.scripts);

  it('says of each command what it is for, in words before what it does', () => {
    for (const [name, command] of scripts) {
      expect(command, name).to.match(/^: '[A-Z][^']{10,100}[^'.]'; \S/);
    }
  });

  it('lists nothing that is not meant to be called', () => {
    for (const [name] of scripts) expect(name).not.to.match(/^(pre|post)/);
  });
});
