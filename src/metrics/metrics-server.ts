import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpServer } from '../http/http-server.js';
import type { Metrics } from './metrics.js';

/** Connections to the port of the metrics: a few Prometheus servers and people. Beyond it, idle ones are closed. */
const MAX_CONNECTIONS = 32;

/** Serves `/metrics`, on a port of its own: it is for operators, and no limit applies to it. */
export function createMetricsServer(metrics: Metrics): HttpServer {
  return new HttpServer((request, response) => void answer(metrics, request, response), MAX_CONNECTIONS);
}

async function answer(metrics: Metrics, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' || request.url !== '/metrics') {
    response.writeHead(404, { 'Content-Type': 'text/plain' }).end('there is only GET /metrics\n');
    return;
  }
  const { contentType, body } = await metrics.text();
  response.writeHead(200, { 'Content-Type': contentType }).end(body);
}
