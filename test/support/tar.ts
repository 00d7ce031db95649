import { Header } from 'tar';

/** Makes a tar archive of files. */
export function tar(files: Record<string, string | Buffer>): Buffer {
  const blocks = Object.entries(files).flatMap(([path, content]) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    new Header({ path, mode: 0o644, size: body.length, type: 'File' }).encode(header);
    return [header, body, Buffer.alloc(-body.length & 511)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
