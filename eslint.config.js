import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', 'node_modules/', 'test/clients/reader.ts'] },
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
    files: ['src/**/*.ts'],
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
      'src/dev/start.ts',
      // Holds for the whole process, as what Node itself reads.
      'src/util/proxy.ts',
      'test/support/*.ts',
      'test/soak/*.ts',
      'test/upgrade/*.ts',
      'test/browser/browser.ts',
      'bench/*.ts',
      'test/images/offline.ts',
    ],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: { '@typescript-eslint/no-require-imports': 'off', 'no-restricted-properties': 'off' },
  },
);
