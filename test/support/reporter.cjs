const { reporters } = require('mocha');

/** Mocha's own report, followed by the summary line `N passed, N failed`. */
module.exports = class SummaryReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once('end', () => console.log(`${this.stats.passes} passed, ${this.stats.failures} failed`));
  }
};
