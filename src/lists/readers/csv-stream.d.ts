/** The part of csv-stream 0.2 that this project uses; the package ships no types. */
declare module 'csv-stream/lib/parser.js' {
  import { EventEmitter } from 'node:events';

  interface ParserOptions {
    delimiter?: string;
    endLine?: string;
    enclosedChar?: string;
    escapeChar?: string;
    /** If given, every line is data. Otherwise the first line names the columns. */
    columns?: string[];
  }

  /** Emits `column` (name, text) for every field and `data` (an object) for every record. */
  export default class Parser extends EventEmitter {
    constructor(options?: ParserOptions);
    parse(text: string): void;
    end(text?: string): void;
  }
}
