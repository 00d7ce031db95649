import { createServer, type RequestListener } from 'node:http';
import { listen } from './listen.js';

/** A web server for datasets, on loopback. */
export interface DatasetServer {
  url: string;
  close: () => Promise<void>;
}

export async function datasetServer(listener: RequestListener): Promise<DatasetServer> {
  const { url, close } = await listen(createServer(listener));
  return { url: `${url}/packages.csv`, close };
}

/** Sends the dataset only after `release`; later requests get it at once. */
export function heldBack(csv: () => string): { listener: RequestListener; release: () => void } {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  return {
    listener: (_request, response) => void released.then(() => response.end(csv())),
    release,
  };
}

/** Sends `start` at once, then `bytes` bytes every `pauseMs`, forever. */
export function trickled(start: string, bytes: number, pauseMs: number): RequestListener {
  return (_request, response) => {
    response.write(start);
    const timer = setInterval(() => response.write('x'.repeat(bytes)), pauseMs);
    response.on('close', () => clearInterval(timer));
  };
}
