/** The dataset cannot be had, or is not as the contract wants it. The message is for the operator: line and reason. */
export class DatasetError extends Error {
  override readonly name = 'DatasetError';
}
