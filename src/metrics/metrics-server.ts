import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpServer } from '../http/server/http-server.js';
import type { Logger } from '../util/log.js';
import type { Metrics } from './metrics.js';

/** Maximum connections to the metrics port: enough for a few Prometheus servers and people. */
const MAX_CONNECTIONS = 32;

/** Serves `/metrics` on a separate port, for operators, without rate limits. */
export function createMetricsServer(metrics: Metrics, log: Logger): HttpServer {
  return new HttpServer((request, response) => {
    respond(metrics, request, response).catch((error: unknown) => {
      log.error({ err: error }, 'the metrics could not be read');
      response.destroy();
    });
  }, MAX_CONNECTIONS);
}

async function respond(metrics: Metrics, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' || request.url !== '/metrics') {
    response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not found: only GET /metrics exists\n');
    return;
  }
  const body = await metrics.registry.metrics();
  response.writeHead(200, { 'Content-Type': metrics.registry.contentType }).end(body);
}
