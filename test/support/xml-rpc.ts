/** The value of a parameter or a member in a call. */
type Value = string | readonly string[] | { [member: string]: Value };

/** The body of a call of XML-RPC, as Python writes it. */
export function callOf(method: string, ...params: Value[]): string {
  const written = params.map((param) => `<param>\n${valueOf(param)}</param>\n`).join('');
  return `<?xml version='1.0'?>\n<methodCall>\n<methodName>${method}</methodName>\n<params>\n${written}</params>\n</methodCall>\n`;
}

function valueOf(value: Value): string {
  if (typeof value === 'string') return `<value><string>${value}</string></value>\n`;
  if (Array.isArray(value))
    return `<value><array><data>\n${value.map(valueOf).join('')}</data></array></value>\n`;
  const members = Object.entries(value).map(
    ([name, member]: [string, Value]) => `<member>\n<name>${name}</name>\n${valueOf(member)}</member>\n`,
  );
  return `<value><struct>\n${members.join('')}</struct></value>\n`;
}

/** The structures in a response, or the one of a fault; all values as texts. */
export function structsOf(xml: string): Record<string, string>[] {
  return [...xml.matchAll(/<struct>(.*?)<\/struct>/gs)].map(([, struct = '']) => {
    const members = struct.matchAll(/<name>(\w+)<\/name><value>(?:<int>)?([^<]*)/g);
    const decoded = [...members].map(([, name = '', value = '']): [string, string] => [
      name,
      value.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
    ]);
    return Object.fromEntries(decoded);
  });
}
