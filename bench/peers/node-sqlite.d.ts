/** The part of Node 24's `node:sqlite` that the benchmark uses; the installed types are those of Node 20. */
declare module 'node:sqlite' {
  type Value = string | number | null;

  export class StatementSync {
    /** Values of the placeholders, in order. */
    run(...values: Value[]): unknown;
    get(): unknown;
    /** Values of the placeholders, by name. */
    all(values: Record<string, Value>): unknown[];
  }

  export class DatabaseSync {
    constructor(path: string);
    exec(sql: string): void;
    prepare(sql: string): StatementSync;
    close(): void;
  }
}
