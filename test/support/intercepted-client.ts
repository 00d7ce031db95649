import {
  Client,
  errors,
  type TransportRequestOptions,
  type TransportRequestParams,
} from '@elastic/elasticsearch';

/** A request of a client. Its `signal` is that of the options. */
export interface SentRequest extends Omit<TransportRequestParams, 'body'> {
  body?: unknown;
  signal: AbortSignal | undefined;
}

/**
 * A client whose requests `intercept` answers: with the body of a response, or with what Elasticsearch responds to
 * `send`. Without `node`, there is no Elasticsearch.
 */
export function interceptedClient(
  intercept: (request: SentRequest, send: () => Promise<unknown>) => unknown,
  node = 'http://127.0.0.1:1',
): Client {
  const client = new Client({ node });
  const { transport } = client;
  const forward = transport.request.bind(transport);
  const request = async (params: TransportRequestParams, options: TransportRequestOptions = {}) => {
    options.signal?.throwIfAborted();
    return await intercept({ ...params, signal: options.signal }, () => forward(params, options));
  };
  return Object.assign(client, { transport: Object.assign(transport, { request }) });
}

/** A response of Elasticsearch that is an error. */
export function errorResponse(statusCode: number, type = 'an_exception', reason = ''): errors.ResponseError {
  const body = { error: { type, reason } };
  return new errors.ResponseError({ statusCode, body, headers: {}, warnings: null, meta: {} as never });
}
