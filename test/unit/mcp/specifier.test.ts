import { expect } from 'chai';
import { candidatesIn, nameIn } from '../../../src/mcp/specifier.js';

/** Texts, by the name in them. */
const TEXTS: Record<string, string[]> = {
  lodash: [
    'lodash',
    'lodash@4.17.21',
    'lodash@',
    'npm:lodash@4',
    'mine@npm:lodash@4',
    '"lodash"',
    '“lodash”',
    '"lodash": "^4.17.21",',
    '"lodash@4"',
    'lodash,',
    'lodash *',
  ],
  '@types/node': ['@types/node', '@types/node@22', '"@types/node": "22"'],
  '@scope': ['@scope'],
  requests: [
    'requests==2.20.0',
    'requests>=2,<3',
    'requests (>=2)',
    'requests; python_version < "3.8"',
    'requests[security, socks]==2 --hash=sha256:0',
    'requests @ https://registry.example/requests.whl',
    'requests>=2 # pinned',
    'pypi:requests',
  ],
  redis: ['redis[hiredis]>=5', 'redis[hiredis]', 'redis=5:7.0-1', 'redis (>= 7)', 'redis v7', 'redis:7'],
  serde: ['serde = "1"', 'serde = { version = "1", features = ["derive"] }', 'serde@1.0', '"serde" = "1"'],
  rails: ['rails (7.0)', 'rails (~> 7.0)', "'rails', '~> 7.0'", 'rails:7.0', 'rails:~>7'],
  'vendor/pkg': ['vendor/pkg:^1.2', 'vendor/pkg:*'],
  curl: ['curl/7.50.3'],
  'org.example:core': ['org.example:core:1.0'],
  'github.com/a/b/v2': ['github.com/a/b/v2@v2.0.1'],
  'Newtonsoft.Json': ['Newtonsoft.Json 13.0.1', 'Newtonsoft.Json, 13.0.1', 'nuget:Newtonsoft.Json'],
  'c++': ['c++', 'c++@1'],
  日本語: ['日本語==1'],
  'LWP::UserAgent': ['LWP::UserAgent', 'LWP::UserAgent@6.72', 'LWP::UserAgent 6.72', 'cran:LWP::UserAgent'],
  'python3.11': ['python3.11', 'python3.11=3.11.2-6'],
  // Names of several words exist, and a version that is part of a name is no syntax.
  'pip install requests': ['pip install requests==2'],
  'rails-7.0.4': ['rails-7.0.4'],
};

const NAMELESS = [
  'https://registry.example/package/lodash',
  'git+https://registry.example/a.git',
  'github:user/name',
  './lodash',
  'C:\\lodash',
  'lodash, express',
  "gem 'rails', '~> 7.0'",
  '<a href="lodash">',
  'redis*',
  '==1.0',
  '""',
  '',
];

describe('The name in a text', () => {
  for (const [name, texts] of Object.entries(TEXTS)) {
    it(`is ${name} without the text after it`, () => {
      for (const text of texts) expect(nameIn(text), text).to.equal(name);
    });
  }

  it('is none in addresses, paths, lists of names and other syntax', () => {
    for (const text of NAMELESS) expect(nameIn(text), text).to.equal(undefined);
  });

  it('is in a package URL, which may be quoted or in upper case', () => {
    for (const text of ['pkg:npm/a@1', '"pkg:npm/a@1",', "'pkg:npm/a@1?b=c'", 'PKG:npm/a@1#d'])
      expect(candidatesIn(text), text).to.deep.equal(['pkg:npm/a@1']);
  });
});
