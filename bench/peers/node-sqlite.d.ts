/** The part of Node 24's `node:sqlite` that the benchmark uses; the installed types are those of Node 20. */
declare module 'node:sqlite' {
  type Value = string | number;

  export class StatementSync {
    /** Values of the placeholders, in order. */
    run(...values: Value[]): unknown;
    /** Values of the placeholders, by name. */
    all(values: Record<string, Value>): unknown[];
  }

  export class DatabaseSync {
    constructor(path: string, options?: { readOnly: boolean });
    exec(sql: string): void;
    prepare(sql: string): StatementSync;
    close(): void;
  }
}
