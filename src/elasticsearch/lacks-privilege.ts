import { errors } from '@elastic/elasticsearch';
import type { ElasticsearchAccess } from './access.js';
import { createReadClient } from './elasticsearch.js';

/**
 * Whether the credentials lack a privilege on an index. Returns false if security is off or the check fails. The
 * request that needs the privilege then reports the error.
 * @param index need not exist.
 */
export async function lacksPrivilege(
  access: ElasticsearchAccess,
  index: string,
  privilege: string,
): Promise<boolean> {
  const client = createReadClient(access);
  try {
    const { index: found } = await client.security.hasPrivileges({
      index: [{ names: [index], privileges: [privilege] }],
    });
    return found[index]?.[privilege] === false;
  } catch (error) {
    if (error instanceof errors.ElasticsearchClientError) return false;
    throw error;
  } finally {
    await client.close();
  }
}
