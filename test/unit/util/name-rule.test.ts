import { expect } from 'chai';
import { canonicalName, NAME_RULES } from '../../../src/util/name-rule.js';

// Random names, compared with Elasticsearch: test/integration/name-rules.test.ts.
describe('A name rule', () => {
  it('has one form for all spellings of a name', () => {
    for (const [name, lowercase, pypi, crates] of [
      ['Flask-SQLAlchemy', 'flask-sqlalchemy', 'flask-sqlalchemy', 'flask-sqlalchemy'],
      ['typing_Extensions', 'typing_extensions', 'typing-extensions', 'typing-extensions'],
      ['zope.interface', 'zope.interface', 'zope-interface', 'zope.interface'],
      ['_.-A--b__', '_.-a--b__', '-a-b-', '-.-a--b--'],
      ['ΣΊΣΥΦΟΣ.İ', 'σίσυφοσ.i', 'σίσυφοσ-i', 'σίσυφοσ.i'],
      ['K ẞ\u{10400}', 'k ß\u{10428}', 'k ß\u{10428}', 'k ß\u{10428}'],
    ] as const) {
      const forms = { exact: name, lowercase, pypi, crates };
      for (const rule of NAME_RULES) expect(canonicalName(rule, name), rule).to.equal(forms[rule]);
    }
  });
});
