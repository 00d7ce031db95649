import tseslint from 'typescript-eslint';

/** The folders of `src`: each may use the ones before it and, in `http`, the types of all. The root of `src`, and `dev`, may use all. */
const LAYERS = [
  'util',
  'elasticsearch',
  'snapshot',
  'search',
  // Knows nothing of configuration, lists and processes.
  'publish',
  'config',
  'lists/fetch',
  'lists/readers',
  'lists/formats',
  'lists',
  'rebuild',
  'registry',
  // Only limits use it.
  'redis',
  'http/problems',
  'http/limits',
  'http/request',
  'http/response',
  'http/auth',
  'http/openapi',
  'http/server',
  'read',
  'routes',
  'metrics',
  'cli',
];

/** The rule against imports of later layers. */
function ruleOf(layer) {
  const later = LAYERS.slice(LAYERS.indexOf(layer) + 1);
  const folders = later.map((other) => other.split('/').at(-1));
  // The files of `lists` belong to a later layer than its folders.
  const above = later.includes(layer.split('/')[0]) ? '|^\\.\\./[^/]+$' : '';
  const packages = later.includes('redis') ? '|^ioredis$' : '';
  const regex = `^\\.\\./(?:.*/)?(?:${[...folders, 'dev', 'mcp', 'web'].join('|')})/|^(?:\\.\\./)+(?:app|main|server|server-process)\\.js$${above}${packages}`;
  const message = `${layer} comes before it in LAYERS: move what both need.`;
  return {
    files: [`src/${layer}/**/*.ts`],
    ignores: LAYERS.filter((other) => other.startsWith(`${layer}/`)).map((other) => `src/${other}/**`),
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { patterns: [{ regex, message, allowTypeImports: layer.startsWith('http/') }] },
      ],
    },
  };
}

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'node_modules/', 'test/api/clients/reader.ts'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js', '{examples,scripts}/*.mjs', 'test/support/*.cjs'] },
      },
    },
    rules: {
      eqeqeq: 'error',
      'no-restricted-properties': [
        'error',
        {
          object: 'process',
          property: 'env',
          message: 'Only the entry points read the environment.',
        },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
  {
    files: ['{src,dev}/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "MemberExpression[object.name='AbortSignal']:matches([property.name='timeout'], [property.value='timeout'])",
          message: 'Use withDeadline: Node 20 may collect AbortSignal.timeout as garbage before it fires.',
        },
      ],
    },
  },
  ...LAYERS.map(ruleOf),
  // Clients of the HTTP API: they share only helpers and types with the service.
  ...['mcp', 'web'].map((client) => ({
    files: [`src/${client}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^\\.\\./(?!util/|\\.\\./package\\.json$)',
              message: 'Only util and types are shared.',
              allowTypeImports: true,
            },
          ],
        },
      ],
    },
  })),
  {
    files: ['test/**/*.ts'],
    rules: {
      // chai's assertions are property reads, such as `expect(x).to.be.null`.
      '@typescript-eslint/no-unused-expressions': 'off',
      // Bodies of answers have no type: the tests are what checks their shape.
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
    },
  },
  {
    files: [
      'src/main.ts',
      'src/cli/*.ts',
      'src/mcp/mcp.ts',
      'dev/start.ts',
      // Holds for the whole process, as what Node itself reads.
      'src/util/proxy.ts',
      'test/support/*.ts',
      'test/soak/*.ts',
      'test/upgrade/*.ts',
      'test/browser/browser.ts',
      'bench/*.ts',
      'test/deploy/images/offline.ts',
      'test/api/package-managers/**',
      'test/api/schemathesis/run.ts',
    ],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: { '@typescript-eslint/no-require-imports': 'off', 'no-restricted-properties': 'off' },
  },
);
