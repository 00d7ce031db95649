import { errors } from '@elastic/elasticsearch';
import { createReadClient, type ElasticsearchAccess } from './elasticsearch.js';

/**
 * Asks Elasticsearch which of some privileges on an index the credentials lack. None where security is off, or where it
 * does not respond: what needs the privilege then says so itself.
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
