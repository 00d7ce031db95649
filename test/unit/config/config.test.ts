import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DATASET_FORMATS } from '../../../src/config/dataset-format.js';
import { ConfigError, readConfig, readKeysConfig, VARIABLES } from '../../../src/config/config.js';

const NODE = 'http://127.0.0.1:9200';
const REQUIRED = { ELASTICSEARCH_URL: NODE };
const BUNDLED = new URL('../../../data/debian-bookworm.csv.gz', import.meta.url).href;

/** Variables that are not numbers or texts, or that no other test sets: where the value is, a text, how it is read. */
const VALUES: [variable: string, path: string, text: string, value: unknown][] = [
  ['HOST', 'host', '0.0.0.0', '0.0.0.0'],
  ['MAX_CONNECTIONS', 'maxConnections', '1', 1],
  ['REBUILD_MAX_SHRINK_PERCENT', 'rebuild.maxShrinkPercent', '100', 100],
  ['ELASTICSEARCH_URL', 'elasticsearch.nodes', 'http://a, https://b,', ['http://a', 'https://b']],
  ['WEIGHTS_COLUMNS', 'weights.columns', 'project, count', { name: 'project', weight: 'count' }],
  ['TRUSTED_PROXIES', 'trustedProxies', '10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
];

/** Expects one line that names the variable, and never repeats its value. */
function expectRejected(read: (env: Record<string, string>) => unknown, name: string, value: string): void {
  expect(() => read({ [name]: value }), JSON.stringify(value))
    .to.throw(ConfigError, new RegExp(`^${name} must [^\\n]+$`))
    .with.property('message')
    .that.does.not.contain('hush');
}

describe('readConfig', () => {
  it('reads numbers, texts and lists', () => {
    for (const [variable, path, text, value] of VALUES)
      expect(readConfig({ ...REQUIRED, [variable]: text })).to.have.deep.nested.property(path, value);
  });

  it('has the defaults that docs/configuration.md lists', () => {
    const guide = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
    const lines = [...guide.matchAll(/^([A-Z_]+)=(\S*)/gm)].map(([, name = '', value]) => [name, value]);
    const listed = Object.fromEntries(lines) as Record<string, string>;
    expect(Object.keys(listed)).to.include.members(VARIABLES);
    expect(readConfig({ ...listed, ...REQUIRED })).to.deep.equal(readConfig(REQUIRED));
    expect(readConfig(REQUIRED).dataset.urls).to.deep.equal([BUNDLED]);
  });

  describe('with DATASET_FORMAT', () => {
    const URL = 'http://127.0.0.1/list';
    const TEMPLATE = 'https://registry.example/{name}';
    const list = (format: string, others: Record<string, string> = {}) => {
      const env = { DATASET_FORMAT: format, DATASET_URL: URL, PACKAGE_URL_TEMPLATE: TEMPLATE, ...others };
      return () => readConfig({ ...REQUIRED, ...env }).dataset;
    };

    it('reads addresses and the paths of json', () => {
      expect(list('debian', { DATASET_URL: `${URL}  file:///b` })().urls).to.deep.equal([URL, 'file:///b']);
      expect(list('json')().jsonPaths).to.deep.equal({ items: [] });
      const text = 'items=data.list name=id version=latest.no weight=n next=page:meta.token';
      expect(list('json', { DATASET_JSON: text })().jsonPaths).to.deep.equal({
        items: ['data', 'list'],
        name: ['id'],
        version: ['latest', 'no'],
        weight: ['n'],
        next: { path: ['meta', 'token'], parameter: 'page' },
      });
      const { next } = list('json', { DATASET_JSON: 'next=links.next' })().jsonPaths;
      expect(next).to.deep.equal({ path: ['links', 'next'], parameter: undefined });
      expect(list('jsonl', { PACKAGE_URL_TEMPLATE: '' })().packageUrlTemplate).to.equal(undefined);
    });

    it('reports every variable that does not fit, also if others are malformed', () => {
      const one = 'DATASET_URL must be one address, unless DATASET_FORMAT is debian';
      const onlyJson = 'DATASET_JSON must be set only with DATASET_FORMAT=json';
      const required = 'DATASET_URL must be set with this DATASET_FORMAT';
      const template =
        'PACKAGE_URL_TEMPLATE must be set with this DATASET_FORMAT, whose packages have no url';
      const port = 'PORT must be a whole number from 0 to 65535';
      const none = { DATASET_URL: '', PACKAGE_URL_TEMPLATE: '' };
      expect(list('npm', none)).to.throw(ConfigError, new RegExp(`^${required}\n${template}$`));
      expect(list('npm', { DATASET_URL: `${URL} ${URL}`, DATASET_JSON: 'name=x', PORT: '-1' }))
        .to.throw(ConfigError)
        .with.property('message', [port, one, onlyJson].join('\n'));
      expect(list('csv', { DATASET_URL: `${URL} ${URL}` })).to.throw(ConfigError, one);
      for (const others of [none, { DATASET_URL: `${URL} ${URL}`, DATASET_JSON: 'name=x' }])
        expect(list('NPM', others)).to.throw(ConfigError, /^DATASET_FORMAT must be one of crates, [^\n]+$/);
    });

    it('compares names as the registries of the format do, unless NAME_RULE says otherwise', () => {
      const rules: Record<string, string> = { pypi: 'pypi', crates: 'crates', packagist: 'lowercase' };
      for (const format of DATASET_FORMATS) {
        expect(list(format)().nameRule, format).to.equal(rules[format] ?? 'exact');
        expect(list(format, { NAME_RULE: 'exact' })().nameRule).to.equal('exact');
      }
    });

    it('rejects malformed paths', () => {
      for (const text of ['name', 'name=', '=x', 'name=a..b', 'x=y', 'name=a name=b', 'name=p:a', '.'])
        expect(list('json', { DATASET_JSON: text }), text).to.throw(
          ConfigError,
          /^DATASET_JSON must be pairs such as [^\n]+$/,
        );
    });
  });

  it('ignores white space around an address', () => {
    const files = { DATASET_FORMAT: 'debian', DATASET_URL: '\nhttp://a/1\n  http://a/2\n' };
    const { dataset } = readConfig({ ...REQUIRED, ...files, PACKAGE_URL_TEMPLATE: 'https://a/{name}\n' });
    expect(dataset).to.deep.include({
      urls: ['http://a/1', 'http://a/2'],
      packageUrlTemplate: 'https://a/{name}',
    });
    expect(readConfig({ ELASTICSEARCH_URL: ` ${NODE}\r\n` })).to.deep.equal(readConfig(REQUIRED));
  });

  it('rebuilds with the read key if there is no rebuild key', () => {
    const config = readConfig({ ...REQUIRED, ELASTICSEARCH_API_KEY: 'reader' });
    expect(config.elasticsearch.rebuildApiKey).to.equal('reader');
  });

  it('treats an empty variable as absent', () => {
    const empty = Object.fromEntries(VARIABLES.map((name) => [name, '']));
    expect(readConfig({ ...empty, ...REQUIRED })).to.deep.equal(readConfig(REQUIRED));
  });

  const malformed: Record<string, string[]> = {
    PORT: ['-1', '65536', '80.5', '80a', ' 80', '1e3', '0x50', '٣'],
    HOST: ['[::1]', '127.0.0.1:3000', 'http://127.0.0.1', 'a b', ' ::1', '-', 'a..b', 'é', '*', '::1\n'],
    ELASTICSEARCH_URL: [
      'localhost:9200',
      ',',
      'http://u%zz:hush@a',
      'http://a/#hush',
      'http://u:hush@a,http://b',
    ],
    ELASTICSEARCH_API_KEY: ['hush\n', '\nhush', 'hush hush', 'hush\0', 'hüsh'],
    DATASET_AUTHORIZATION: ['hush', 'Bearer hush\n', 'Bearer  hush', 'Bearer h\u00fcsh', 'Basic hush hush'],
    REDIS_URL: ['localhost:6379', 'redis://cache/one', 'redis://cache?family=6&password=hush'],
    REGISTRY_SOURCE: ['tracker.debian.org\n', 'a\r\nSet-Cookie: b', '\0', '\u001b[31m', 'a\u2028b'],
    REBUILD_SECRET: ['hush-hu', 'hush-hush\n', 'hush-hush\uFFFD', '🚀🚀🚀🚀🚀🚀🚀', 'h'.repeat(1025)],
    BYPASS_SECRET: [' ', 'change-me-too', 'CHANGE_ME_hush', 'changeme', 'change me, hush'],
    DATASET_URL: ['/tmp/names.csv', 'ftp://hush/names.csv', 'file:names.csv', 'file://host/a', 'file:///%00'],
    REGISTRY_SLUG: ['Debian', '2debian', 'debian\n', 'a'.repeat(41)],
    PACKAGE_URL_TEMPLATE: ['https://a/', 'file:///{name}', 'https://a/{name}/${name}', 'https://{name}.a/'],
    TRUSTED_PROXIES: ['10.0.0.0/33', '10.0.0.1,x', ',', 'fe80::1%eth0', '::ffff:10.0.0.0/8', '0.0.0.0/0'],
    WEIGHTS_URL: ['hush', 'ftp://hush', 'https://a https://hush', 'file:hush'],
    WEIGHTS_COLUMNS: ['hush', 'hush,', 'hush,hush', 'hush,a,b', ',', 'hush, hush '],
    PUBLIC_URL: ['a.example', 'ftp://a', 'https://u:hush@a', 'https://a?q', 'https://a#b'],
    INDEX_REPLICAS: ['-1', 'all', '0-', '0 - 1', '1.5', '0-all-1', '1000', '5-1'],
    RATE_LIMIT_POINTS: ['-1', '1000000001', '99999999999999999999'],
    NAME_RULE: ['PyPI', 'pypi,crates', 'npm', ' '],
    LOG_LEVEL: ['INFO', 'verbose', '30'],
  };
  it('states the expected value of a malformed variable in one line', () => {
    for (const [name, values] of Object.entries(malformed))
      for (const value of values) expectRejected((env) => readConfig({ ...REQUIRED, ...env }), name, value);
  });

  const wellFormed: Record<string, string[]> = {
    HOST: ['::', '::1', 'fe80::1%eth0', 'localhost', 'my-host.example', 'my_host', '10.0.0.1'],
    ELASTICSEARCH_URL: ['https://u%40x:p%2F@one:9200/search/,https://u%40x:p%2F@two', 'http://[::1]:9200'],
    ELASTICSEARCH_API_KEY: ['VnVhQ2ZHY0JDZGJrUW0tZTVhT3g6dWkybHAyYXhUTm1zeWFrdzl0dk5udw=='],
    REDIS_URL: ['redis://:p%40@cache:1/', 'rediss://u:p@[::1]/15', 'redis://cache/2?family=6'],
    DATASET_URL: ['file:///a%20b%3F.csv', 'https://u:p@a.example:8443/a%zz?token=a#b', 'http://[::1]/'],
    REGISTRY_SOURCE: ['https://pub.dev/', 'Les paquets d’été'],
    PACKAGE_URL_TEMPLATE: ['https://a/{name}', 'https://a?p={+name}#{name}', 'http://a:1/#/{name}'],
    REBUILD_SECRET: ['with space', 'ünïcöde🚀', 'h'.repeat(1024), '%zz&=?#%zz', 'exchange-me'],
    TRUSTED_PROXIES: ['::ffff:10.0.0.1', '::ffff:10.0.0.0/104', 'fd00::/8,10.0.0.0/255.0.0.0', '2001:db8::1'],
  };
  it('accepts all forms of a value', () => {
    for (const [name, values] of Object.entries(wellFormed))
      for (const value of values)
        expect(() => readConfig({ ...REQUIRED, [name]: value }), value).not.to.throw();
  });

  it('names all variables that are missing or malformed, in one line each', () => {
    const env = { PORT: 'x', REBUILD_SECRET: 'hush\n', REDIS_URL: 'x', TRUSTED_PROXIES: 'x', LOG_LEVEL: '' };
    expect(() => readConfig(env))
      .to.throw(ConfigError)
      .with.property('message')
      .that.matches(
        /^PORT must .+\nELASTICSEARCH_URL is .+\nREDIS_URL must .+\nREBUILD_SECRET must .+\nTRUSTED_PROXIES must .+$/,
      )
      .and.does.not.contain('hush');
  });

  it('names the text in braces that would stay in every URL', () => {
    for (const found of ['{version}', '{{name}}', '${name}', '%{name}', '}'])
      expect(() => readConfig({ ...REQUIRED, PACKAGE_URL_TEMPLATE: `https://a/{name}/${found}` })).to.throw(
        ConfigError,
        `PACKAGE_URL_TEMPLATE must not contain ${found}: only {name} and {+name} are replaced`,
      );
  });
});

describe('readKeysConfig', () => {
  it('accepts any password, but no user with a colon', () => {
    const administrator = { ELASTICSEARCH_ADMIN_USER: 'elastic', ELASTICSEARCH_ADMIN_PASSWORD: 'a:b\n🚀' };
    const env = { ...REQUIRED, ...administrator, REGISTRY_SLUG: 'pub-dev_2' };
    const config = { nodes: [NODE], slug: 'pub-dev_2', username: 'elastic', password: 'a:b\n🚀' };
    expect(readKeysConfig(env)).to.deep.equal(config);
    expect(() => readKeysConfig({ ...env, ELASTICSEARCH_ADMIN_USER: 'a:b' })).to.throw(
      ConfigError,
      /^ELASTICSEARCH_ADMIN_USER must have no colon$/,
    );
  });

  it('names the variables of the service and of the administrator together', () => {
    expect(() => readKeysConfig({ ELASTICSEARCH_URL: 'x', ELASTICSEARCH_ADMIN_USER: '' })).to.throw(
      ConfigError,
      /^ELASTICSEARCH_URL must .+\nELASTICSEARCH_ADMIN_USER is required\nELASTICSEARCH_ADMIN_PASSWORD is required$/,
    );
  });
});
