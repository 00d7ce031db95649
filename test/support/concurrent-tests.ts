/** Registers a test, as `it` does. */
type RegisterTest = (title: string, body: () => Promise<unknown>) => void;

/**
 * For tests of one suite that mostly wait and do not depend on each other: they run concurrently, each
 * reported under its own title. They start before the first test of the suite, so they also run alongside
 * tests that `it` registers. Call it after the hooks that they need. `--grep` selects what is reported, not
 * what runs.
 * @param atOnce how many run at a time, in the order of registration: a few if each starts a process.
 */
export function concurrentTests(atOnce = Infinity): RegisterTest {
  const waiting: (() => Promise<void>)[] = [];
  const runInTurn = async (): Promise<void> => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) await run();
  };
  before(() => {
    for (let i = Math.min(atOnce, waiting.length); i > 0; i--) void runInTurn();
  });
  return (title, body) => {
    const outcome = new Promise<void>((resolve, reject) => {
      waiting.push(() => body().then(() => resolve(), reject));
    });
    // A failure before the test is due to be reported is not an unhandled rejection.
    outcome.catch(() => undefined);
    it(title, () => outcome);
  };
}
