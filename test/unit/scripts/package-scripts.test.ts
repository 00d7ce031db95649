import { expect } from 'chai';
import packageJson from '../../../package.json' with { type: 'json' };

describe('npm run', () => {
  const scripts = Object.entries(packageJson.scripts);

  it('describes the purpose of each command before the command itself', () => {
    for (const [name, command] of scripts) expect(command, name).to.match(/^: '[A-Z][^']{10,100}[^'.]'; \S/);
  });

  it('lists only commands that are meant to be called', () => {
    for (const [name] of scripts) expect(name).not.to.match(/^(pre|post)/);
  });
});
