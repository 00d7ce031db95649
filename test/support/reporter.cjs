const { reporters } = require('mocha');

/** Mocha's own report, and after it the one line that says how it went: `N passed, N failed`. */
module.exports = class SummaryReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once('end', () => console.log(`${this.stats.passes} passed, ${this.stats.failures} failed`));
  }
};
