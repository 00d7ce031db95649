import { Header } from 'tar';

/** Makes a tar archive of files. */
export function tar(files: Record<string, string | Buffer>): Buffer {
  const blocks = Object.entries(files).flatMap(([path, content]) => {
    const body = Buffer.from(content);
    const header = new Header({ path, size: body.length, type: 'File', mode: 0o644 });
    header.encode();
    return [header.block ?? Buffer.alloc(0), body, Buffer.alloc(-body.length & 511)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
