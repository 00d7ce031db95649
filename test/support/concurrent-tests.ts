/** Registers a test, as `it` does. */
type RegisterTest = (title: string, body: () => Promise<unknown>) => void;

/**
 * For tests of one suite that mostly wait and do not depend on each other: they run at the same time, and each is reported
 * under its own title. They start before the first test of the suite, and so also run beside those that `it` registers.
 * To be called after the hooks that they need. `--grep` selects what is reported, not what runs.
 * @param atOnce how many run at the same time, in the order of registration: a few where each starts a process.
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
    // A failure that comes before its turn to be reported is not unhandled.
    outcome.catch(() => undefined);
    it(title, () => outcome);
  };
}
