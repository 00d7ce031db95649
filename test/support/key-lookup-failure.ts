/** The error of Elasticsearch 9.4 while its security index has no active shard. */
const error = {
  type: 'security_exception',
  reason:
    'unable to authenticate with provided credentials and anonymous access is not allowed for this request',
  additional_unsuccessful_credentials: 'API key: apikey authentication for id an-id encountered a failure',
  header: { 'WWW-Authenticate': ['Basic realm="security", charset="UTF-8"', 'ApiKey'] },
};

/** The body of its response, which has status 401. */
export const KEY_LOOKUP_FAILURE = JSON.stringify({ error: { root_cause: [error], ...error }, status: 401 });
