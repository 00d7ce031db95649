import { expect } from 'chai';
import { ConfigError, readAdministrator, readConfig, readKibanaConfig } from '../../src/config.js';

const REQUIRED = { ELASTICSEARCH_URL: 'http://127.0.0.1:9200' };

describe('readConfig', () => {
  it('requires only ELASTICSEARCH_URL, and has defaults for the rest', () => {
    const config = readConfig(REQUIRED);
    expect(config).to.deep.include({
      port: 3000,
      host: '127.0.0.1',
      elasticsearch: { nodes: ['http://127.0.0.1:9200'], apiKey: undefined, rebuildApiKey: undefined },
      redisUrl: undefined,
      registry: { slug: 'registry', source: undefined },
      index: { shards: 1, replicas: '0-1' },
      rebuild: { secret: undefined, intervalSeconds: 0, maxShrinkPercent: 10 },
      bypassSecret: undefined,
      trustedProxies: [],
      rateLimit: { points: 120, windowSeconds: 60 },
      maxConnections: 1000,
      logLevel: 'info',
    });
    expect(config.dataset).to.include({
      packageUrlTemplate: undefined,
      maxBadRows: 0,
      downloadTimeoutSeconds: 3600,
    });
    expect(config.dataset.url).to.match(/^file:\/\/\/.*\/data\/debian-bookworm\.csv\.gz$/);
  });

  it('reads every variable', () => {
    const config = readConfig({
      PORT: '0',
      HOST: '0.0.0.0',
      ELASTICSEARCH_URL: 'http://one:9200, https://two:9200,',
      ELASTICSEARCH_API_KEY: 'reader',
      ELASTICSEARCH_REBUILD_API_KEY: 'writer',
      REDIS_URL: 'rediss://cache:6380/1',
      DATASET_URL: 'https://registry.example/names.csv.gz',
      REGISTRY_SLUG: 'pub-dev_2',
      REGISTRY_SOURCE: 'pub.dev',
      PACKAGE_URL_TEMPLATE: 'https://registry.example/{+name}',
      REBUILD_SECRET: 'a',
      BYPASS_SECRET: 'b',
      TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      INDEX_SHARDS: '3',
      INDEX_REPLICAS: '0-all',
      RATE_LIMIT_POINTS: '0',
      RATE_LIMIT_WINDOW_SECONDS: '86400',
      MAX_CONNECTIONS: '1',
      REBUILD_INTERVAL_SECONDS: '3600',
      REBUILD_MAX_SHRINK_PERCENT: '100',
      CHANGES_RETENTION: '100',
      DATASET_MAX_BAD_ROWS: '7',
      DATASET_DOWNLOAD_TIMEOUT_SECONDS: '86400',
      METRICS_PORT: '9464',
      LOG_LEVEL: 'silent',
    });
    expect(config).to.deep.include({
      changesRetention: 100,
      metricsPort: 9464,
      port: 0,
      host: '0.0.0.0',
      elasticsearch: {
        nodes: ['http://one:9200', 'https://two:9200'],
        apiKey: 'reader',
        rebuildApiKey: 'writer',
      },
      redisUrl: 'rediss://cache:6380/1',
      registry: { slug: 'pub-dev_2', source: 'pub.dev' },
      dataset: {
        url: 'https://registry.example/names.csv.gz',
        packageUrlTemplate: 'https://registry.example/{+name}',
        maxBadRows: 7,
        downloadTimeoutSeconds: 86_400,
      },
      index: { shards: 3, replicas: '0-all' },
      rebuild: { secret: 'a', intervalSeconds: 3600, maxShrinkPercent: 100 },
      bypassSecret: 'b',
      trustedProxies: ['10.0.0.0/8', '::1'],
      rateLimit: { points: 0, windowSeconds: 86400 },
      maxConnections: 1,
      logLevel: 'silent',
    });
  });

  it('accepts a slug that only resembles a data stream', () => {
    for (const slug of ['logsearch', 'logs_debian', 'my-logs', 'metricsd', 'log']) {
      expect(readConfig({ ...REQUIRED, REGISTRY_SLUG: slug }).registry.slug).to.equal(slug);
    }
  });

  it('rebuilds with the read key if there is no rebuild key', () => {
    const config = readConfig({ ...REQUIRED, ELASTICSEARCH_API_KEY: 'reader' });
    expect(config.elasticsearch.rebuildApiKey).to.equal('reader');
  });

  it('names ELASTICSEARCH_URL when it is missing', () => {
    expect(() => readConfig({})).to.throw(
      ConfigError,
      /^ELASTICSEARCH_URL is required, such as http:\/\/127\.0\.0\.1:9200$/,
    );
  });

  it('treats an empty variable as absent', () => {
    expect(() => readConfig({ ELASTICSEARCH_URL: '' })).to.throw(
      ConfigError,
      'ELASTICSEARCH_URL is required',
    );
    const config = readConfig({
      ...REQUIRED,
      PORT: '',
      REDIS_URL: '',
      TRUSTED_PROXIES: '',
      REBUILD_SECRET: '',
    });
    expect(config).to.deep.equal(readConfig(REQUIRED));
  });

  it('ignores variables that are not its own', () => {
    expect(readConfig({ ...REQUIRED, PATH: '/bin', port: 'x' })).to.deep.equal(readConfig(REQUIRED));
  });

  it('returns a frozen configuration', () => {
    const config = readConfig(REQUIRED);
    expect(config).to.be.frozen;
    expect(() => Object.assign(config, { port: 1 })).to.throw(TypeError);
    expect(() => Object.assign(config.rateLimit, { points: 0 })).to.throw(TypeError);
  });

  const malformed: Record<string, string[]> = {
    PORT: ['-1', '65536', '80.5', '80a', ' 80', '1e3', '0x50', '٣'],
    HOST: ['[::1]', '127.0.0.1:3000', 'http://127.0.0.1', 'a b', ' ::1', '-', 'a..b', 'é', '*', '::1\n'],
    ELASTICSEARCH_URL: [
      'localhost:9200',
      'ftp://node',
      ',',
      ' ',
      'http://one,two',
      'http://',
      'HTTP://node',
      'http:node',
      'http://no\nde',
      'http://u%zz:hush@node',
      'http://u:hush%@node',
      'http://node%zz',
      'http://node:0',
      'http://node:65536',
      'http://node?pretty=hush',
      'http://node/#hush',
      'http://node?',
      'http://user@node',
      'http://:hush@node',
      'http://u:hush@one,http://two',
      'http://u:hush@one,http://u:hush2@two',
      'http://one:9200,http://one:9200/',
    ],
    ELASTICSEARCH_API_KEY: [
      'hush\n',
      'hush\r\n',
      '\nhush',
      'hush hush',
      'hush\0',
      'hüsh',
      'hush\u2028',
      '\u{1f680}',
    ],
    ELASTICSEARCH_REBUILD_API_KEY: ['hush\n', 'hu\tsh'],
    REDIS_URL: [
      'localhost:6379',
      'http://cache',
      'redis',
      'redis:cache',
      'redis:///0',
      'REDISS://cache',
      'redis://h%zz:6379',
      'redis://h%41:6379',
      'redis://u%zz:hush@cache',
      'redis://:hush%@cache',
      'redis://cache:0',
      'redis://cache:65536',
      'redis://cache/one',
      'redis://cache/0/1',
      'redis://cache/-1',
      'redis://cache#hush',
      'redis://cache?password=hush',
      'redis://cache?enableOfflineQueue=true',
      'redis://cache?family=6&password=hush',
      'redis://ca\nche',
    ],
    REGISTRY_SOURCE: ['tracker.debian.org\n', 'a\r\nSet-Cookie: b', '\0', '\u001b[31m', 'a\u2028b'],
    REBUILD_SECRET: ['hush\n', ' hush', 'hush\u00a0', 'hu\u0000sh', 'hush\uFFFD', 'h'.repeat(1025)],
    BYPASS_SECRET: ['hush\n', '\thush', ' '],
    DATASET_URL: [
      '/tmp/names.csv',
      'names.csv',
      'ftp://registry.example/names.csv',
      'data:text/csv,name',
      'file:names.csv',
      'file://host/names.csv',
      'file:///names%2Fhush.csv',
      'file:///names%zz.csv',
      'file:///names%00.csv',
      'file:///na\nmes.csv',
      'FILE:///names.csv',
      'http:///',
      'http://u%zz:hush@registry.example/names.csv',
      'https://registry.example:0/names.csv',
    ],
    REGISTRY_SLUG: [
      'Debian',
      '2debian',
      '-debian',
      'de bian',
      'débian',
      'debian\n',
      'a'.repeat(41),
      'logs',
      'logs-of-debian',
      'metrics',
      'profiling-',
      'synthetics-packages',
    ],
    PACKAGE_URL_TEMPLATE: [
      'https://registry.example/',
      'registry.example/{name}',
      'file:///{name}',
      'https://a/{ name }',
      'https://{name}/',
      'https://{+name}.registry.example/{name}',
      'https://registry.example:{name}/',
      'https://u@{name}/',
      'https:registry.example/{name}',
      'https://registry.example/\n{name}',
      'https://registry example/{name}',
    ],
    TRUSTED_PROXIES: [
      'proxy.example',
      '10.0.0.0/33',
      '10.0.0.1;10.0.0.2',
      '10.0.0.1,x',
      '::1/129',
      ',',
      '1',
      'loopback',
      'fe80::1%eth0',
      'fe80::%eth0/10',
      '::ffff:10.0.0.0/8',
      '::ffff:0:0/96',
      '0:0:0:0:0:ffff:a00:0/24',
      '10.0.0.0/8/8',
      '10.0.0.0/',
      '0.0.0.0/0',
    ],
    INDEX_SHARDS: ['0', '1025', 'one'],
    INDEX_REPLICAS: ['-1', 'all', '0-', '0 - 1', '1.5', '0-all-1', '1000', '5-1'],
    RATE_LIMIT_POINTS: ['-1', '1000000001', '99999999999999999999'],
    RATE_LIMIT_WINDOW_SECONDS: ['0', '86401', '1m'],
    MAX_CONNECTIONS: ['0', '1000001', '1e3', 'many'],
    REBUILD_INTERVAL_SECONDS: ['-1', '2000001', '1h'],
    CHANGES_RETENTION: ['-1', '101', 'all'],
    REBUILD_MAX_SHRINK_PERCENT: ['101', '10%', '-10'],
    DATASET_MAX_BAD_ROWS: ['-1', '1000001', 'many'],
    DATASET_DOWNLOAD_TIMEOUT_SECONDS: ['0', '-1', '86401', '1h', '1.5'],
    LOG_LEVEL: ['INFO', 'verbose', '30'],
  };
  for (const [name, values] of Object.entries(malformed)) {
    it(`states in one line what ${name} must be`, () => {
      for (const value of values) {
        expect(() => readConfig({ ...REQUIRED, [name]: value }), JSON.stringify(value))
          .to.throw(ConfigError, new RegExp(`^${name} must [^\\n]+$`))
          .with.property('message')
          .that.does.not.contain('hush');
      }
    });
  }

  const wellFormed: Record<string, string[]> = {
    HOST: ['::', '::1', 'fe80::1%eth0', 'localhost', 'my-host.example', 'my_host', '10.0.0.1'],
    ELASTICSEARCH_URL: ['https://u%40x:p%2F@one:9200/search/,https://u%40x:p%2F@two', 'http://[::1]:9200'],
    ELASTICSEARCH_API_KEY: ['VnVhQ2ZHY0JDZGJrUW0tZTVhT3g6dWkybHAyYXhUTm1zeWFrdzl0dk5udw=='],
    REDIS_URL: [
      'redis://cache',
      'redis://:p%40@cache:1/',
      'rediss://u:p@[::1]/15',
      'redis://cache/2?family=6',
    ],
    DATASET_URL: [
      'file:///a%20b%3F.csv',
      'https://u:p@registry.example:8443/a%zz?token=a#b',
      'http://[::1]/',
    ],
    REGISTRY_SOURCE: ['https://pub.dev/', 'Les paquets d’été'],
    PACKAGE_URL_TEMPLATE: ['https://a/{name}', 'https://a?p={+name}#{name}', 'http://a:1/#/{name}'],
    REBUILD_SECRET: ['a', 'with space', 'ünï 🚀', 'h'.repeat(1024), '%zz&=?#'],
    TRUSTED_PROXIES: ['::ffff:10.0.0.1', '::ffff:10.0.0.0/104', 'fd00::/8,10.0.0.0/255.0.0.0', '2001:db8::1'],
  };
  for (const [name, values] of Object.entries(wellFormed)) {
    it(`accepts all forms of ${name}`, () => {
      for (const value of values)
        expect(() => readConfig({ ...REQUIRED, [name]: value }), value).not.to.throw();
    });
  }

  it('names one variable if several are malformed', () => {
    const env = { ...REQUIRED, PORT: 'x', LOG_LEVEL: 'x', REDIS_URL: 'x' };
    expect(() => readConfig(env)).to.throw(ConfigError, /^PORT must be a whole number from 0 to 65535$/);
  });
});

describe('readKibanaConfig', () => {
  it('requires no variable', () => {
    const config = readKibanaConfig({ KIBANA_API_KEY: '' });
    expect(config).to.deep.equal({ url: 'http://127.0.0.1:5601', apiKey: undefined, slug: 'registry' });
    expect(config).to.be.frozen;
  });

  it('reads every variable', () => {
    const env = { KIBANA_URL: 'https://kibana:5601/s/x', KIBANA_API_KEY: 'key', REGISTRY_SLUG: 'pub-dev_2' };
    expect(readKibanaConfig(env)).to.deep.equal({
      url: 'https://kibana:5601/s/x',
      apiKey: 'key',
      slug: 'pub-dev_2',
    });
  });

  it('states in one line what a malformed variable must be', () => {
    for (const env of [
      { KIBANA_URL: 'kibana:5601' },
      { KIBANA_URL: 'file:///x' },
      { KIBANA_URL: 'http://u:hush@kibana:5601' },
      { KIBANA_URL: 'http://kibana:5601?hush' },
      { KIBANA_URL: 'http://kibana:5601/#hush' },
      { KIBANA_URL: 'http://kib\nana' },
      { KIBANA_API_KEY: 'hush\n' },
      { REGISTRY_SLUG: 'Debian' },
    ]) {
      expect(() => readKibanaConfig(env))
        .to.throw(ConfigError, /^[A-Z_]+ must [^\n]+$/)
        .with.property('message')
        .that.does.not.contain('hush');
    }
  });
});

describe('readAdministrator', () => {
  it('accepts any password, and any user without a colon', () => {
    const env = { ELASTICSEARCH_ADMIN_USER: 'elastic', ELASTICSEARCH_ADMIN_PASSWORD: 'a:b\n🚀' };
    expect(readAdministrator(env)).to.deep.equal({ username: 'elastic', password: 'a:b\n🚀' });
    expect(() => readAdministrator({ ...env, ELASTICSEARCH_ADMIN_USER: 'a:b' })).to.throw(
      ConfigError,
      /^ELASTICSEARCH_ADMIN_USER must have no colon$/,
    );
  });
});
