import { errors } from '@elastic/elasticsearch';
import { createReadClient, type ElasticsearchAccess } from './elasticsearch.js';

/**
 * Returns those of the privileges on an index that the credentials lack. Empty if security is off or
 * Elasticsearch does not respond: whatever needs the privilege then reports the error.
 * @param index need not exist.
 */
export async function missingPrivileges(
  access: ElasticsearchAccess,
  index: string,
  privileges: readonly string[],
): Promise<string[]> {
  const client = createReadClient(access);
  try {
    const { index: found } = await client.security.hasPrivileges({
      index: [{ names: [index], privileges: [...privileges] }],
    });
    return privileges.filter((privilege) => found[index]?.[privilege] === false);
  } catch (error) {
    if (error instanceof errors.ElasticsearchClientError) return [];
    throw error;
  } finally {
    await client.close();
  }
}
