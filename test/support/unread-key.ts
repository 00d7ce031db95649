/** What Elasticsearch 9.4 responds with status 401 while it cannot read its index of API keys. */
const error = {
  type: 'security_exception',
  reason:
    'unable to authenticate with provided credentials and anonymous access is not allowed for this request',
  additional_unsuccessful_credentials: 'API key: apikey authentication for id an-id encountered a failure',
  header: { 'WWW-Authenticate': ['Basic realm="security", charset="UTF-8"', 'ApiKey'] },
};

export const UNREAD_KEY = JSON.stringify({ error: { root_cause: [error], ...error }, status: 401 });
