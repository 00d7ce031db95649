/** A record as `naiveCsv` reads it; an invalid one has no fields. */
export interface NaiveRecord {
  line: number;
  fields: string[] | undefined;
}

/**
 * A short and slow reference for the CSV reader: a record is the smallest number of lines that are
 * well-formed together. If there is none, the first line is invalid, and the next one starts a record.
 */
export function naiveCsv(csv: string): NaiveRecord[] {
  const lines = csv.replace(/^\ufeff/, '').split('\n');
  const isTerminated = lines.pop() === '';
  const records: NaiveRecord[] = [];
  for (let first = 0; first < lines.length;) {
    let length = 1;
    let parsed = parseRecord(lines.slice(first, first + length).join('\n'));
    while (parsed === 'open' && first + length < lines.length) {
      length++;
      parsed = parseRecord(lines.slice(first, first + length).join('\n'));
    }
    const fields = typeof parsed === 'string' ? undefined : parsed;
    records.push({ line: first + 1, fields });
    first += fields === undefined ? 1 : length;
  }
  // A byte order mark alone is also an unterminated record.
  if (!isTerminated || csv === '\ufeff') records.push({ line: lines.length + 1, fields: undefined });
  return records;
}

/** @returns `open` if the text ends within quotes. */
function parseRecord(text: string): string[] | 'open' | 'invalid' {
  const fields: string[] = [];
  let rest = text;
  for (;;) {
    let field = '';
    if (rest.startsWith('"')) {
      rest = rest.slice(1);
      while (!rest.startsWith('"') || rest.startsWith('""')) {
        if (rest === '') return 'open';
        field += rest.charAt(0);
        rest = rest.slice(rest.startsWith('""') ? 2 : 1);
      }
      rest = rest.slice(1);
    } else {
      while (rest !== '' && rest !== '\r' && !rest.startsWith(',')) {
        if (rest.startsWith('"') || rest.startsWith('\r')) return 'invalid';
        field += rest.charAt(0);
        rest = rest.slice(1);
      }
    }
    fields.push(field);
    if (rest === '' || rest === '\r') return fields;
    if (!rest.startsWith(',')) return 'invalid';
    rest = rest.slice(1);
  }
}
